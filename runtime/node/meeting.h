// The links of one node, and what is agreed over them: who is there, which plan is followed, when all start and end.
//
// All of it lives on the link's thread: sessions, fleet::Member, and on the coordinator's node fleet::Coordinator. The
// thread that runs the node calls the functions here, which hand their work over; those that return something wait for
// it. It takes the tasks that the fleet has for it by take().
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "embed/link_ends.h"
#include "fleet/coordinator.h"
#include "fleet/member.h"
#include "net/system/identity.h"
#include "net/system/listener.h"
#include "net/system/reactor.h"
#include "net/system/tls.h"
#include "node/fleet_look.h"
#include "node/peers.h"
#include "node/requests.h"
#include "node/run_time.h"
#include "observe/report.h"

namespace millrace::plan {
struct Plan;
}

namespace millrace::node {

// Something that the thread which runs the node has to do.
struct Task {
  enum class Type {
    compile,     // the plan of all, from offers(); answer by compiled() or refuse()
    prepare,     // the part of `brief`; answer by prepared() or unable()
    answer,      // the question `text`; answer by answered()
    request,     // `request` of a node; answer by reply()
    drop,        // that part is not wanted any more
    start,       // the run's time goes on
    stop,        // sources are to end
    leave,       // this node alone ends
    clocks_over, // all clocks have ended at their homes
    fail,        // the run ends by `failure`
    fail_stream, // the stream of its clock does
    over         // the whole run is over; `error`: none if well
  };
  Type type{};
  fleet::Brief brief{};
  uint64_t number = 0; // compile: of the offers; answer: of the question
  std::string text{};
  std::optional<fleet::RunFailure> failure{};
  std::optional<Error> error{};
  fleet::Request request{};
};

struct MeetingOptions {
  std::vector<std::string> nodes; // by number
  uint32_t number = 0;            // this node's
  std::vector<PeerPlan> peers;
  std::vector<net::Endpoint> listen; // empty: nobody dials this node
  std::filesystem::path folder;      // key.pem is there
  int64_t patience_ns = 0;
  int64_t wait_ns = INT64_MAX; // for nodes that are missing before the start; INT64_MAX: for ever
  std::string pipeline;        // hash
  std::string canonical;       // the pipeline itself
  std::string program;         // version
  std::string offer;
  // A line for a person; any thread. `warn`: one that is to be read also by who wants no notes.
  std::function<void(const std::string&)> tell, warn;
};

class Meeting {
 public:
  // Listens and dials from now on. Throws Failure as the listener and the identity do.
  Meeting(MeetingOptions options, const device::Timeline& machine_time, RunTime& time);
  ~Meeting();

  // The oldest task; none within that time.
  std::optional<Task> take(std::chrono::milliseconds within);
  bool coordinates() const { return options_.number == 0; }

  // ---- answers to tasks, and news of this node's run
  void compiled(std::vector<fleet::Part> parts, uint64_t number); // nothing happens if there are newer offers
  void refuse(const Error& error, uint64_t number);
  // The coordinator hears it once the nodes are there with which ticks are exchanged.
  void prepared(uint32_t revision);
  void unable(uint32_t revision, const Error& error);
  void answered(uint64_t question, const std::string& answer);
  void failed(const fleet::RunFailure& failure);        // any thread
  void stream_failed(const fleet::RunFailure& failure); // any thread
  void finished(const std::string& report, const std::string& trace, const std::optional<Error>& error);
  void waits(const std::vector<std::string>& lines); // this node's run, for these; any thread
  void reply(const fleet::Reply& reply);             // any thread
  // Asks another node, or this one. `done` is called once, by the link's thread; never, if the run is over before. Any
  // thread.
  void request(const std::string& to, const std::string& body, const Requests::Done& done);
  // The nodes of these that are away from this one. Any thread; as look_around().
  std::vector<std::string> away_of(const std::vector<std::string>& nodes);
  void clocks_over(); // those whose home this node is have ended
  // The whole run is to end, or this node alone where it does not coordinate. Any thread.
  void stop();

  // ---- the run's crossings
  // The sessions carry them from now on, or from the start on where this side dials. Throws Failure (MR0802, MR0807) if
  // ticks cross to a node to which there can be no link.
  void attach(exec::Run& run, const plan::Plan& plan, const fleet::Brief& brief);
  // The sessions touch the run no more.
  void detach();
  // Ticks of the run wait for a session, or there is room for more. Any thread; never waits.
  void ring() { reactor_.ring(); }
  // True if all that left this node has arrived, but for what is left out (7.9). The run has been over for `waited_ns`.
  bool has_delivered(int64_t waited_ns);

  // ---- time passes: to be called some twenty times a second
  void look_at_time();

  // The runs of other nodes wait for these, as they last said: "on gpu: …". Any thread.
  std::vector<std::string> waiting_elsewhere();
  // The links to the other nodes, and all of the fleet, as they were a moment ago. Any thread.
  std::vector<LinkReport> links();
  FleetLook look_around();

  // ---- on the coordinator
  // The answer of another node to a question. Throws Failure (MR0804) if it does not answer.
  std::string ask(const std::string& node, const std::string& question);
  std::map<std::string, std::string> offers();  // from the other nodes, by name
  std::map<std::string, std::string> reports(); // from those that are done
  std::map<std::string, std::string> traces();  // the same
  int64_t round_trip_ns();                      // the longest that was measured

  // The others hear that this node leaves, without waiting for anything that is under way: the process ends now. Any
  // thread.
  void leave_at_once();

  // Lets the others hear the end, and leaves the links in order; a few seconds at most.
  void part();

 private:
  // The parcels that leave by one end of a peer.
  struct Passage {
    int64_t still_since_ns = 0;          // none has been acknowledged since then
    int64_t closed_since_ns = INT64_MAX; // without a connection since then; INT64_MAX: there is one
  };
  // The link's thread alone.
  struct Peer {
    PeerPlan plan;
    net::Session* session = nullptr;
    std::vector<embed::LinkEnd> ends; // for the run that is attached
    std::vector<CrossingLook> looks;  // by end
    std::vector<Passage> passages;    // the same
    int64_t changed_ns = 0;           // it is there, or away, since then
    bool follows = false;
    bool is_away = true;
    int64_t away_since_ns = INT64_MAX;    // INT64_MAX: it is there, or was never
    bool has_left = false;                // in order: it never goes on with what it had
    std::optional<Error> other_version;   // why the two cannot talk, while that is so
    int64_t refused_since_ns = INT64_MAX; // as a second process of this node
    fleet::Link link = 0;                 // on the coordinator: the process that was met last
    std::string why;                      // it cannot be reached
    // Another node than the peer answered, in this attempt to reach it, and in all since then.
    std::string other;
    int64_t other_since_ns = INT64_MAX;
  };

  int64_t now_ns() const { return machine_time_.now_ns(); }
  // Runs `work` on the link's thread, and waits for it.
  template <class Function>
  auto on_link(Function work) {
    const auto task = std::make_shared<std::packaged_task<decltype(work())()>>(work);
    auto done = task->get_future();
    reactor_.post([task] { (*task)(); });
    return done.get();
  }
  // The same without waiting; then the fleet's events are looked at.
  void then_look(std::function<void()> work);
  void add(Task task);
  // Texts that the coordinator has of other nodes, by name; a node of which it has none is left out.
  std::map<std::string, std::string> of_others(const std::function<std::string(uint32_t node)>& text_of);
  std::string words_of(const std::vector<std::string>& names);

  // ---- the link's thread
  void join(const PeerPlan& plan);
  void hear(Peer& peer, const net::Event& event, const std::string& why);
  void hear_refusal(Peer& peer, const net::Event& event);
  void hear_other_version(Peer& peer);
  void end_by(Error error);
  void log_presence(const Peer& peer, bool away) const;
  void set_away(Peer& peer, bool away);
  static void record_left(Peer& peer);
  void look();
  bool look_at_coordinator();
  bool look_at_member();
  void say(net::Session& session, std::string text);
  void start(int64_t zero_ns);
  void follow(Peer& peer);
  std::vector<std::string> missing() const;
  void look_at_missing(int64_t now_ns);
  void send_waits(int64_t now_ns);
  void log_waits(const std::vector<std::string>& names);
  void record_links(int64_t now_ns);
  static void look_at_ends(Peer& peer, int64_t now_ns);
  std::string program_of(const std::string& node) const;
  void send_prepared();
  void look_at_compile(int64_t now_ns);
  void look_at_patience(int64_t now_ns);
  void look_at_requests(int64_t now_ns);
  void take(const fleet::Request& request);
  void look_at_second(int64_t now_ns);
  int64_t resume_ns() const;
  void look_at_other(Peer& peer);
  bool has_delivered(const Peer& peer, const embed::LinkEnd& end, int64_t waited_ns) const;
  void fail_for_good(Error error);
  Peer* peer_of(fleet::Link link);

  const MeetingOptions options_;
  const std::string name_;
  const uint64_t process_; // random
  const net::Identity identity_;
  const net::TlsContext tls_;
  const device::Timeline& machine_time_;
  RunTime& time_;

  // The link's thread.
  std::deque<Peer> peers_;
  std::unique_ptr<fleet::Coordinator> coordinator_; // null: another node coordinates
  fleet::Member member_;
  Peer* coordinator_peer_ = nullptr; // null: this node coordinates
  Requests requests_;
  fleet::Link links_;
  std::optional<fleet::Brief> brief_; // that the links follow
  bool is_started_ = false, is_over_ = false, has_failed_ = false;
  bool is_stopping_ = false;         // the run of all is to end
  std::optional<int64_t> start_ns_;  // zero of a start for which the coordinator's clock is not known yet
  std::optional<uint32_t> prepared_; // revision of a part that is made, and waits for the links
  int64_t prepared_since_ns_ = 0;
  uint64_t compiles_ = 0;
  std::optional<int64_t> compile_since_ns_; // a plan is wanted since then
  int64_t send_waits_ns_ = INT64_MIN;       // a member, before the start: when it says again for whom it waits
  int64_t missing_since_ns_ = INT64_MAX;    // before the start: nodes are missing since then
  int64_t warn_ns_ = INT64_MAX;             // the next warning of it

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;                       // under mutex_
  FleetLook look_around_;                        // the same
  std::map<net::NodeId, std::string> came_from_; // the same: addresses of those that dialled this node
  std::vector<std::string> elsewhere_;           // the same: waiting_elsewhere()
  std::optional<std::string> answer_;            // the same: to the question that ask() waits for
  std::string unknown_; // the same: who called since the last line of those that this node waits for

  net::Reactor reactor_; // its thread uses all of the above
  std::optional<net::Listener> listener_;
};

} // namespace millrace::node
