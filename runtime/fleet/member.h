// A member of a fleet: offers what its node can do, carries out one brief, and runs when the coordinator says so.
//
// It does no I/O and keeps no time. Its owner tells it what happens on the link to the coordinator and how its own run
// goes, and polls for events.
//
//   step      goes on                                                        when
//   offers    prepares (event prepare)                                       a brief came, and the order prepare
//   prepares  ready, unable                                                  prepared(), unable()
//   ready     prepares again (events drop, prepare)                          a brief of a later revision came
//             runs (event start)                                             the order start for its brief came
//   unable    prepares again                                                 a brief of a later revision came
//   runs      done                                                           finished()
//   done      over (event over)                                              the order over came
//
// From every step it is over when the coordinator refuses the process or says that all is over, when it was away for
// longer than the patience (MR0804), and when another process answers in its place after the start (MR0806). A run that
// is under way then is told to fail first.
//
// A member never follows a lower revision, nor a second brief of one revision, and starts at most once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fleet/event_queue.h"
#include "fleet/statement.h"

namespace millrace::fleet {

class Member {
 public:
  struct Event {
    enum class Type : uint8_t {
      say,         // `text` to the coordinator
      prepare,     // compile and make ready `brief`; answer by prepared() or unable(), at once or later
      drop,        // the part that was prepared is not wanted any more
      question,    // `text` about a handler of this node; answer by answered(number)
      request,     // `request` of a node; answer by reply(), at once or later. It may come twice
      reply,       // `text` to the request `number` of this process
      start,       // the run begins at `zero_ns` of the coordinator's clock
      stop,        // the run's sources are to end
      clocks_over, // all clocks have ended at their homes
      waits,       // `lines`: what the runs of other nodes wait for now, "on gpu: …"
      fail,        // the run ends by `failure`; a later one takes the place of an earlier one
      fail_stream, // the stream of the failure's clock ends by it, on whichever node it was; also once the run is done
      over,        // nothing more comes; `error`: how the run of all ended, none if well
    };
    Type type{};
    std::string text;
    uint64_t number = 0; // question, reply
    Request request;
    Brief brief;
    int64_t zero_ns = 0;
    std::optional<RunFailure> failure;
    std::optional<Error> error;
    std::vector<std::string> lines;
  };

  Member(Offer offer, std::string coordinator, int64_t patience_ns);

  // ---- the link: the coordinator is there, or there again; is not heard for 3 s
  void back();
  void away(int64_t now_ns, const std::string& why = ""); // `why`: for people; "": it is just not heard
  void received(std::string_view text);

  // ---- its own part and run. `revision` is the brief's that was to be prepared: an answer to an older one is ignored.
  void prepared(uint32_t revision, std::string part);
  void unable(uint32_t revision, const Error& error);
  void failed(const RunFailure& failure);        // the earliest so far; before the start too
  void stream_failed(const RunFailure& failure); // the same of its clock, in the latest epoch
  // `error`: why its part has not gone well, if it kept nobody from going on. The run of all ends with it.
  void finished(std::string report, std::string trace = "", std::optional<Error> error = {});
  void waits(std::vector<std::string> lines); // its run waits for these now; none: it goes on
  void clocks_over();                         // those whose home this node is have ended
  void answered(uint64_t question, std::string body);
  // To other nodes, while the coordinator is there; else nothing is said.
  void ask(const Request& request) { say(request); }
  void reply(const Reply& reply) { say(reply); }

  int64_t next_timer() const;
  void on_time(int64_t now_ns);
  bool poll(Event& event) { return events_.poll(event); }

  uint32_t revision() const { return brief_.revision; }
  // Before the start: the nodes that are not there, as the coordinator last said.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  enum class Step : uint8_t { offers, prepares, ready, unable, runs, done };

  void take(const Brief& brief);
  void take(const Order& order);
  void take(const StreamOver& over);
  void begin_to_prepare();
  void end(std::optional<Error> error);
  void say(const Statement& statement);
  void send_state();
  void send_streams();

  Offer offer_;
  std::string coordinator_;
  int64_t patience_ns_;
  uint64_t coordinator_process_ = 0; // 0: not heard yet
  bool is_linked_ = false;
  int64_t away_since_ns_ = INT64_MAX; // INT64_MAX: it is there, or was never
  std::string why_away_;

  Step step_ = Step::offers;
  Brief brief_; // that it follows; revision 0: none
  Brief next_;  // came, and the order to prepare it has not
  State state_;
  bool told_stop_ = false, told_clocks_over_ = false;
  std::vector<std::string> told_waits_, missing_;
  std::optional<RunFailure> told_failure_;
  std::map<std::string, RunFailure> own_streams_;  // that have failed here, by clock
  std::map<std::string, RunFailure> told_streams_; // that are over, by clock
  bool is_over_ = false;
  EventQueue<Event> events_;
};

} // namespace millrace::fleet
