// From a handler class to the C table of abi.h: exceptions end here and become the sentence of a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "millrace/abi.h"
#include "millrace/handler/base.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

inline const mr_declaration* Handler::declare(uint32_t bodies) {
  for (detail::PortData& data : ports_) {
    data.port.type_name = data.type_name.c_str();
    raw_ports_.push_back(data.port);
  }
  for (detail::ParamData& data : params_) {
    if (!data.choices.empty()) {
      data.choices.push_back(nullptr);
      data.param.choices = data.choices.data();
    }
    raw_params_.push_back(data.param);
  }
  declaration_ = {sizeof(mr_declaration),
                  traits_ | bodies,
                  raw_ports_.data(),
                  static_cast<uint32_t>(raw_ports_.size()),
                  static_cast<uint32_t>(raw_params_.size()),
                  raw_params_.data(),
                  max_pending_,
                  gap_,
                  thread_,
                  cost_hint_ns_,
                  declaration_.scratch_bytes,
                  items_max_,
                  declaration_.host_mib,
                  declaration_.state_bytes,
                  declaration_.device_mib};
  return &declaration_;
}

inline void Handler::bind(const uint32_t* edge_counts) {
  uint32_t next[2] = {0, 0}; // inputs, outputs
  for (size_t i = 0; i < ports_.size(); ++i) {
    detail::PortData& data = ports_[i];
    *data.first = next[data.port.direction];
    *data.count = edge_counts[i];
    // Every port has an entry in the flat arrays, connected or not; only an empty list has none.
    next[data.port.direction] += (data.port.flags & MR_PORT_MANY) ? edge_counts[i] : 1;
  }
}

namespace detail {

// The table of one handler class: thunks that stop exceptions at the boundary.
template <class H>
struct Type {
  static constexpr uint32_t kBodies = (HasCpuBody<H> ? uint32_t{MR_TRAIT_CPU_BODY} : 0u) |
                                      (HasCudaBody<H> ? uint32_t{MR_TRAIT_CUDA_BODY} : 0u) |
                                      (HasFinish<H> ? uint32_t{MR_TRAIT_FINISH} : 0u);
  static_assert(HasCpuBody<H> || HasCudaBody<H>, "a handler needs process(Tick&, Cpu&) or process(Tick&, Cuda&)");
  static_assert(!HasTickBody<H> || !HasItemsBody<H>, "process(Items&, Cpu&) takes the place of process(Tick&, Cpu&)");

  static H& of(void* self) { return *static_cast<H*>(self); }

  template <class F>
  static mr_status guarded(const mr_host* host, void* context, F&& function) noexcept {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      return MR_ERROR; // if the runtime refused the memory, it has said why; else it reports that memory ran out
    } catch (const CodedError& error) {
      const bool knows_kinds = host->size > offsetof(mr_host, fail_as);
      knows_kinds ? host->fail_as(context, error.fault(), error.what()) : host->fail(context, error.what());
    } catch (const std::exception& error) {
      host->fail(context, error.what());
    } catch (...) {
      host->fail(context, "an exception that is no std::exception was thrown");
    }
    return MR_ERROR;
  }
  template <class F>
  static mr_status guarded(void* self, F&& function) noexcept {
    H& handler = of(self);
    return guarded(handler.host_, handler.context_, [&] { return function(handler); });
  }

  static mr_status create(const mr_host* host, void* context, void** self, const mr_declaration** declaration) {
    return guarded(host, context, [&] {
      auto handler = std::make_unique<H>();
      handler->host_ = host;
      handler->context_ = context;
      *declaration = handler->declare(kBodies);
      *self = static_cast<void*>(handler.release());
      return mr_status{MR_OK};
    });
  }
  static void destroy(void* self) { delete &of(self); }
  static mr_status set_param(void* self, uint32_t index, const mr_param_value* value) {
    return guarded(self, [&](H& handler) {
      ParamData& data = handler.params_.at(index);
      data.assign(data.target, *value);
      return MR_OK;
    });
  }
  static mr_status bind(void* self, const uint32_t* edge_counts) {
    return guarded(self, [&](H& handler) {
      handler.bind(edge_counts);
      return MR_OK;
    });
  }
  static mr_status probe(void* self, mr_facts* facts) {
    return guarded(self, [&](H& handler) {
      Facts view{facts};
      handler.probe(view);
      return MR_OK;
    });
  }
  static mr_status configure(void* self, const mr_format* inputs, uint32_t, mr_format* outputs, uint32_t) {
    return guarded(self, [&](H& handler) {
      handler.configure(Formats(inputs, outputs));
      return MR_OK;
    });
  }
  static mr_status narrow(void* self, uint32_t port, mr_format* accepts) {
    return guarded(self, [&](H& handler) {
      handler.narrow(port, *accepts);
      return MR_OK;
    });
  }
  static void offers(void* context, Offers::Say say) {
    if constexpr (HasOffers<H>) {
      Offers offers(context, say);
      H::offers(offers);
    }
  }
  static mr_status start_on(void* self, const mr_device_info* device) {
    return guarded(self, [device](H& handler) {
      const DeviceInfo info = {static_cast<DeviceKind>(device->kind),
                               device->ordinal,
                               device->name,
                               device->multiprocessors,
                               device->compute_major,
                               device->compute_minor,
                               device->shared_bytes_max,
                               device->memory_bytes};
      static_cast<Handler&>(handler).start(info);
      return MR_OK;
    });
  }
  template <void (Handler::*Member)()>
  static mr_status call(void* self) {
    return guarded(self, [](H& handler) {
      (static_cast<Handler&>(handler).*Member)();
      return MR_OK;
    });
  }
  static mr_status process(void* self, mr_tick* raw) {
    return guarded(self, [raw](H& handler) {
      Cpu cpu;
      if constexpr (HasItemsBody<H>) {
        Items items(&raw, 1);
        handler.process(items, cpu);
        return items[0].status();
      } else {
        Tick tick(*raw);
        handler.process(tick, cpu);
        return tick.status();
      }
    });
  }
  static mr_status process_items(void* self, mr_tick* const* raw, uint32_t count) {
    return guarded(self, [raw, count](H& handler) {
      Items items(raw, count);
      Cpu cpu;
      handler.process(items, cpu);
      bool ends = false;
      for (Tick& item : items) {
        if (item.status() == MR_NOT_YET) item.fail("it has inputs and says that it has nothing");
        ends = ends || item.status() == MR_END;
      }
      return ends ? MR_END : MR_OK; // an item that fails has said so
    });
  }
  static mr_status finish_items(void* self, mr_tick* const* raw, uint32_t count) {
    return guarded(self, [raw, count](H& handler) {
      Items items(raw, count);
      Cpu cpu;
      handler.finish(items, cpu);
      return MR_OK;
    });
  }
  static mr_status process_cuda(void* self, mr_tick* raw) {
    return guarded(self, [raw](H& handler) {
      Tick tick(*raw);
      Cuda cuda{raw};
      handler.process(tick, cuda);
      return tick.status();
    });
  }
  static mr_status finish(void* self, mr_tick* raw) {
    return guarded(self, [raw](H& handler) {
      Cpu cpu;
      if constexpr (HasItemsFinish<H>) {
        Items items(&raw, 1);
        handler.finish(items, cpu);
        return items[0].status();
      } else {
        Tick tick(*raw);
        handler.finish(tick, cpu);
        return tick.status();
      }
    });
  }
  static void interrupt(void* self) {
    guarded(self, [](H& handler) {
      handler.interrupt();
      return MR_OK;
    });
  }

  static mr_handler_type table(const char* type, const char* summary, const char* manual) {
    mr_handler_type t{};
    t.size = sizeof t;
    t.type = type;
    t.summary = summary;
    t.manual = manual;
    t.create = &create;
    t.destroy = &destroy;
    t.set_param = &set_param;
    t.bind = &bind;
    t.probe = &probe;
    t.configure = &configure;
    t.start = &call<static_cast<void (Handler::*)()>(&Handler::start)>;
    t.start_on = &start_on;
    if constexpr (HasCpuBody<H>) t.process = &process;
    if constexpr (HasCudaBody<H>) t.process_cuda = &process_cuda;
    if constexpr (HasFinish<H>) t.finish = &finish;
    if constexpr (HasItemsBody<H>) t.process_items = &process_items;
    if constexpr (HasItemsFinish<H>) t.finish_items = &finish_items;
    t.drain = &call<&Handler::drain>;
    t.stop = &call<&Handler::stop>;
    t.reset = &call<&Handler::reset>;
    t.interrupt = &interrupt;
    t.narrow = &narrow;
    if constexpr (HasOffers<H>) t.offers = &offers;
    return t;
  }
};

// The handlers that this plugin (or the built-in set) registers. Each shared library has its own list.
inline std::vector<const mr_handler_type*>& registered_types() {
  static std::vector<const mr_handler_type*> types;
  return types;
}
struct Registration {
  mr_handler_type type;
  explicit Registration(const mr_handler_type& table) : type(table) { registered_types().push_back(&type); }
  Registration(const Registration&) = delete;
};

} // namespace detail

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
