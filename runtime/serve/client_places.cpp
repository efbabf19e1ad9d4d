// Keeps the places of clients; see client_places.h.
#include "serve/client_places.h"

#include <algorithm>

namespace millrace::serve {

size_t ClientPlaces::count(bool with_place) const {
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(),
                                           [&](const auto& one) { return one.second.has_place == with_place; }));
}

std::optional<ClientPlaces::Number> ClientPlaces::oldest_arrival() const {
  for (const auto& [number, client] : clients_)
    if (!client.has_place) return number;
  return std::nullopt;
}

std::optional<ClientPlaces::Number> ClientPlaces::most_idle(int64_t now_ms) const {
  std::optional<Number> found;
  int64_t most_ms = -1;
  for (const auto& [number, client] : clients_) {
    const int64_t idle_ms = now_ms - client.moved_ms;
    if (!client.has_place || idle_ms < (client.owed > 0 ? limits_.answer_ms : limits_.idle_ms)) continue;
    if (idle_ms <= most_ms) continue;
    most_ms = idle_ms;
    found = number;
  }
  return found;
}

std::optional<ClientPlaces::Number> ClientPlaces::come(Number client, int64_t now_ms) {
  std::optional<Number> goes;
  if (count(false) >= limits_.arrivals) goes = oldest_arrival();
  if (goes) clients_.erase(*goes);
  clients_[client] = {false, now_ms, 0};
  return goes;
}

ClientPlaces::Place ClientPlaces::take(Number client, int64_t now_ms) {
  const auto asks = clients_.find(client);
  if (asks == clients_.end()) return {};
  if (asks->second.has_place) return {true, std::nullopt};
  std::optional<Number> goes;
  if (count(true) >= limits_.clients) {
    goes = most_idle(now_ms);
    if (!goes) return {};
    clients_.erase(*goes);
  }
  asks->second = {true, now_ms, asks->second.owed};
  return {true, goes};
}

void ClientPlaces::moved(Number client, int64_t now_ms) {
  const auto found = clients_.find(client);
  if (found != clients_.end() && found->second.has_place) found->second.moved_ms = now_ms;
}

void ClientPlaces::owe(Number client, size_t answers) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.owed = answers;
}

void ClientPlaces::leave(Number client) { clients_.erase(client); }

std::optional<ClientPlaces::Number> ClientPlaces::overdue(int64_t now_ms) const {
  const std::optional<Number> oldest = oldest_arrival();
  if (!oldest || now_ms - clients_.at(*oldest).moved_ms < limits_.arrives_ms) return std::nullopt;
  return oldest;
}

int64_t ClientPlaces::until_overdue_ms(int64_t now_ms) const {
  const std::optional<Number> oldest = oldest_arrival();
  if (!oldest) return -1;
  return std::max<int64_t>(clients_.at(*oldest).moved_ms + limits_.arrives_ms - now_ms, 0);
}

} // namespace millrace::serve
