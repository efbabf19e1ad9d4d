// The table of all error codes. Add a line here before throwing a new code; a code is never reused.
#include "observe/error_codes.h"

#include <algorithm>
#include <cctype>

namespace millrace {

namespace {

// Family 1: how a command was used.
const std::vector<CodeInfo> kUsage = {
    {101, "an assignment that cannot be read",
     "--set takes handler.key=value, for example --set blur.sigma=2. Nested keys are joined by dots: --set "
     "out.codec.preset=fast. The value is everything behind the first '='."},
    {102, "an assignment to a handler that is not there",
     "--set named a handler that the pipeline does not have. The part before the first dot is the handler's name, not "
     "its type."},
    {103, "an assignment to a key that cannot be set so",
     "type, input and inputs shape the graph and are changed in the pipeline file, not by --set. Keys that begin with "
     "x- are comments for other tools and nobody reads them."},
    {104, "no such file",
     "A pipeline that ends in .yaml, .yml or .json is taken for a file, and this one could not be read."},
    {105, "a command that cannot be read",
     "The command line has an option or argument that the command does not take, or lacks one that it needs."},
    {106, "an unknown handler type was asked for",
     "A command was given a handler type that neither the runtime nor any plugin that it found has. `millrace "
     "handlers` lists all of them."},
    {107, "an unknown error code was asked for",
     "`millrace explain` was given a code that no version of millrace prints."},
    {108, "a value that --set cannot use",
     "The value of an assignment to a reserved key, such as every or device, cannot be read as what that key takes. "
     "The message says what was expected."},
    {109, "a part that is not there yet",
     "The option or command belongs to a part of millrace that this version does not have yet. It is refused rather "
     "than "
     "passed over, because what would happen is not what it says."},
    {110, "facts that cannot be used",
     "--facts takes a JSON file of the form {handler: {rate: \"30000/1001\", live: false, tick_count: 100, outputs: "
     "{port: {pixel_format: \"bgr8\", width: 640, height: 480}}}}. All of a handler's outputs are given, or none."},
    {111, "a file that a command cannot write",
     "The file that --json, --trace or another option names cannot be opened for writing: its folder is not there, or "
     "may not be written to. Nothing has run."},
    {112, "a handler that cannot be checked so",
     "`millrace check-handler` makes values for any input, but it cannot guess what a required parameter is to be. "
     "Give "
     "it with --set parameter=value. A handler that writes a file gets one in a temporary folder by itself."},
    {113, "an address that cannot be listened on",
     "The address of --metrics is none of this machine's, its port is taken by another program, or the port is below "
     "1024 and the user may not use it. Port 0 takes one that is free and says which."},
    {114, "a machine file that cannot be used",
     "The file of --machine, or the one that `millrace calibrate` keeps for this machine, is not of the form that "
     "docs/reference/machine_file.md describes. One that calibrate wrote can be thrown away and measured again."},
    {115, "a saved plan that cannot be used",
     "--plan takes what `millrace plan --json` printed. The file is not that, or another version wrote it."},
    {120, "a folder that a new project cannot use",
     "`millrace new` writes into a folder that is empty or not there, so that nothing is written over."},
};

// Family 2: the pipeline's text.
const std::vector<CodeInfo> kText = {
    {201, "not YAML",
     "The text is not well-formed YAML, so nothing in it was looked at. Usual causes: a tab in the indentation, a "
     "missing space after a colon, a bracket or a quote that is not closed, or a line that is indented less than its "
     "neighbours."},
    {202, "not UTF-8",
     "A pipeline file is UTF-8 text. The file has a byte that cannot be part of UTF-8 at the place that is named; it "
     "may have been saved in another encoding. Control characters other than tab and line breaks are refused too: they "
     "do not show in an editor."},
    {203, "a limit of the pipeline text",
     "A pipeline file has bounds, so that a broken or hostile file cannot take the machine: 4 MiB of text, 32 levels "
     "of nesting, 10,000 handlers, 100,000 edges, 500,000 values after aliases are written out. No pipeline that a "
     "person writes comes near them."},
    {204, "an alias that repeats too much",
     "YAML anchors and aliases may be used, but aliases that multiply (an alias of a list of aliases of …) or that "
     "contain themselves are refused: a few lines could stand for billions of values."},
    {205, "a key that is given twice", "YAML readers keep one of the two silently and differ in which. Remove one."},
    {206, "an unknown key",
     "The key is not one that may stand there. At the top: version, name, handlers, clock, clocks, devices and x-*. "
     "Within a handler every key that is not reserved is a parameter of its type. Keys that begin with x- are comments "
     "for other tools and are allowed everywhere."},
    {207, "a key that is missing",
     "Each pipeline needs version and handlers; each handler needs a type; each input written as a map needs from."},
    {208, "another kind of value was expected",
     "The key takes another kind of value: a map, a list, a scalar, a whole number, true or false."},
    {209, "a version that is not read",
     "The file format's version is 1. A file of a later version needs a later millrace."},
    {210, "a name that cannot be used",
     "Names of handlers and clocks begin with a letter or an underscore and go on with letters, digits, '_' and '-', "
     "at most 64 characters. A dot would be read as the separator between handler and port."},
    {211, "a number outside its range",
     "The number is well written but the key takes a smaller or larger one. The range is in the message."},
    {212, "a duration or rate that cannot be read",
     "Durations are a number and a unit without a space: 500us, 40ms, 1.5s, 2m. Rates are beats a second: 30, 29.97, "
     "or exactly 30000/1001."},
    {213, "none of the words that the key takes", "The key takes one of a few words; the message lists them."},
    {214, "a reference that cannot be read",
     "An input names a handler (its only output) or handler.port: two names with one dot between them."},
    {215, "keys that exclude each other",
     "Two keys in one place contradict each other, or one of them means nothing without another: clock and clocks, lag "
     "without policy: latest, depth or full without policy: queue, within without policy: align, initial where no "
     "earlier value is read, lag on an edge between clocks, policy: align within one."},
    {216, "not yet there",
     "The key is reserved for a part of millrace that this version does not have yet. It is refused rather than passed "
     "over, because a pipeline that seems to use it would do something else than it says."},
    {217, "an empty pipeline", "There is no handler, so there is nothing to run."},
    {220, "a one-line pipeline that cannot be read",
     "In a one-line pipeline `!` joins handlers: test.pattern width=640 ! image.blur sigma=2 ! null.sink. Between two "
     "`!` stands a handler type with key=value behind it, or a reference to a handler that was named before: name. or "
     "name.port."},
    {221, "a quote that is not closed",
     "A quote groups characters with spaces or `!`: text=\"two words\". Each quote needs its partner; within double "
     "quotes a backslash takes the next character as it is."},
    {222, "a missing `!`",
     "Two handler types follow each other without `!` between them. Write `!` to join them. A branch begins with a "
     "reference to a handler, as in `video. ! detect.people`, or behind a `;`."},
    {223, "a reference to a handler that is not named before",
     "`name.` or `name.port` in a one-line pipeline refers to a handler that stands before it. `name.` means any "
     "earlier handler; `name.port` only one that name= has named, since `blur.x` could as well be a type."},
};

// Family 3: the graph: names, ports, types, parameters.
const std::vector<CodeInfo> kGraph = {
    {301, "an edge from a handler that is not there",
     "An input names a handler that the pipeline does not have. Order in the file does not matter, so it is a matter "
     "of spelling, or the handler was removed."},
    {302, "a port that the handler does not have",
     "An edge names a port that the handler's type does not declare. `millrace inspect TYPE` lists its ports."},
    {303, "a name that is used twice",
     "Two handlers or two clocks have one name. Edges refer to handlers by name, so each needs its own."},
    {304, "a handler type that is not known",
     "Neither the runtime nor a plugin that it found brings this type. `millrace handlers` lists what there is, failed "
     "plugins first; --plugin-path DIR adds a folder."},
    {305, "ports of different types",
     "An edge joins an output and an input that carry different things, such as an Image and Records<Box>. Nothing "
     "converts between payload types by itself; put a handler between them."},
    {306, "a required input that is not connected",
     "The handler cannot run without this input. Connect it with input: or inputs:."},
    {307, "an input that is connected twice",
     "The input takes one edge. Only inputs that are declared to take many accept a list."},
    {308, "a port that has to be named",
     "The handler has several outputs (or inputs), so the edge must say which: handler.port."},
    {310, "an unknown parameter",
     "The handler's type declares no parameter of this name, and it is no reserved key. `millrace inspect TYPE` lists "
     "the parameters."},
    {311, "a parameter of the wrong type", "The text cannot be read as the type that the parameter declares."},
    {312, "a parameter outside its range",
     "The value is of the right type but outside the range that the handler declares."},
    {313, "none of the parameter's choices", "The parameter takes one of a few words; the message lists them."},
    {314, "a required parameter is missing",
     "The handler has no default for this parameter: the pipeline has to give it."},
    {315, "a clock that is not there", "A handler names a clock that clocks: does not list."},
    {316, "a parameter that cannot be changed while it runs",
     "Only parameters that are declared live may change between two ticks; `millrace inspect TYPE` shows which are. "
     "Others are set before the start."},
    {317, "a path with a word that only a shell replaces",
     "~ and $HOME are replaced by the shell, before a command gets them, and not where they stand within quotes or in "
     "a "
     "pipeline file. Write the path out."},
};

// Family 4: the plan.
const std::vector<CodeInfo> kPlan = {
    {401, "a cycle without a delay",
     "The handlers wait for each other within one tick, so none can begin. An edge with delay: 1 and an initial: reads "
     "the value of the tick before and makes the cycle legal."},
    {402, "formats that share nothing",
     "The two ends of an edge have no pixel format or dtype in common, and no conversion between them is known or the "
     "edge forbids it. The message says what each side can do."},
    {403, "a size that nobody knows",
     "Memory is planned before the run, so each dimension has to be fixed or bounded. Give the source a size or a "
     "bound."},
    {404, "the memory does not fit",
     "What the plan may need in this domain is more than there is. The message has the sum and its largest parts: "
     "smaller pictures, fewer ticks in flight or shorter queues lower it. in_flight: [least, most] takes as many "
     "ticks as fit."},
    {405, "a queue that is too shallow",
     "The queue's depth is smaller than the number of results that may be pending on the path that it rejoins, so the "
     "pipeline would stop for good. Make it at least as deep as the message says."},
    {406, "an edge between clocks without a policy",
     "The two handlers beat on different clocks, so 'the value of this tick' has no meaning between them. Use policy: "
     "latest, queue, or align with within:."},
    {407, "a delay without an initial value",
     "At the first ticks there is no earlier value yet: say what to use with initial: empty. A host object, and a "
     "tensor "
     "without dimensions, cannot be empty: the input that reads it is then optional."},
    {408, "a device that is not available",
     "A handler is pinned to a device, or domain: of an input requires one, that is not there, is excluded by "
     "--devices, or for which the handler has no body; or two of these contradict each other. Or one of its ports is "
     "declared gpu, and no device of --devices has a body of it."},
    {409, "several instances of a handler with state",
     "concurrency above 1 runs a handler as several instances, which is only right for types that declare themselves "
     "stateless: the others must see their ticks in order."},
    {410, "a bypass that is not possible",
     "on_error: bypass passes the input on in place of the failed output, so the output has to be like the input and "
     "not written in place."},
    {411, "a copy or conversion that the edge forbids",
     "The edge says copy: forbid or convert: forbid, but its two ends lie in different domains or formats. Move one "
     "end, or allow it."},
    {412, "a saved plan that does not fit",
     "A run by --plan does what the plan says or nothing. The pipeline, its sources or the machine have changed since "
     "it was saved, so that something else would run; the message names the first difference. Prices, reasons and "
     "notes may differ."},
    {413, "a file that two handlers use",
     "One pipeline reads and writes the same file, or writes it twice, so that one would destroy what the other needs. "
     "Files are compared by name, through links and by their place on the disk; patterns by what they may name. Give "
     "one of them another path."},
    {414, "clocks that could stand still for ever",
     "Where clocks are joined by several ways, each may wait for the other. A queue with full: block may make its "
     "writer late, so it is allowed only where it is the only way between its clocks: full: drop_oldest drops by media "
     "time, the same in every run. Without loss, give the reader the writer's clock."},
    {415, "a window that is too small for clocks that wait for each other",
     "align waits for later values, and an encoder answers later. Where clocks wait for each other in a circle, each "
     "has "
     "to hold the ticks of that time: the message says how many. Leave in_flight out, or give the clock its rate."},
    {416, "a clock that nothing leads",
     "A clock without sources ends with the clocks that lead to it. No edge leads to this one from a clock that has a "
     "source."},
    {417, "a gap that means nothing",
     "gap says how many ticks without a value may come while the reader of an edge owes a result. Only a handler that "
     "declares max_pending owes any; millrace inspect TYPE says so."},
};

// Family 5: plugins.
const std::vector<CodeInfo> kPlugin = {
    {501, "a library that cannot be loaded",
     "The loader could not open the shared library. Its words are in the message; usually a library that it needs is "
     "missing, or it was built for another machine."},
    {502, "a library that is no plugin",
     "The library was opened but does not export millrace_plugin. Add MILLRACE_PLUGIN(\"name\", \"version\") to one of "
     "its files."},
    {503, "a plugin for another ABI version",
     "Until 1.0 the plugin's ABI version has to be the runtime's exactly. Build the plugin again with this runtime's "
     "headers."},
    {504, "a plugin whose table is wrong",
     "A handler type of the plugin lacks a function, a name or a declaration that the ABI requires. Nothing of the "
     "plugin is registered."},
    {505, "a type that two plugins bring",
     "Two plugins register the same handler type. Nothing of the second one is registered; remove one of them from the "
     "plugin path."},
    {506, "a handler that could not be constructed",
     "The handler's constructor failed; its words are in the message. Construction should be cheap and cannot fail for "
     "want of files or devices: that belongs in probe or start."},
};

// Family 6: a run.
const std::vector<CodeInfo> kRun = {
    {601, "a handler failed",
     "A handler's body reported an error. on_error says what follows: fail (the default) ends the run after the "
     "earlier ticks, skip leaves out the tick, restart starts the handler anew, bypass passes its input on."},
    {602, "a handler exceeded its budget",
     "A call over its budget is named, interrupted 5 s later and given up after another 5 s; the command then ends "
     "with "
     "exit code 1. The budget of process and finish is 10 s, or what `budget:` says. Where the run is to end already, "
     "the interrupt comes with the name. The report is written before the command ends. A body that may block has to "
     "come back once interrupt() was called; in an application RuntimeOptions::on_hang decides what follows."},
    {603, "nothing moves",
     "No handler made progress for two seconds and the stream has not ended. The message says who waits for whom."},
    {604, "a source could not say what it has",
     "probe failed: the file, camera or address could not be opened or read. The handler's words are in the message."},
    {605, "a handler could not start",
     "start failed: memory, a model or a device could not be prepared. The handler's words are in the message."},
    {606, "a file could not be written",
     "A report, trace or plan could not be written to the place that was asked for. After a run that is a warning: "
     "what the run itself has written is there, and the exit code is the run's."},
    {607, "a handler takes long in a function that belongs to no tick",
     "probe, configure, start, drain, reset or stop is not back after 10 s, or the second time of `budget: 40ms/2m`. "
     "That is told and nothing is ended: a model may load for minutes. Once the run is to end, probe, configure and "
     "start are interrupted at once, and the others when they are past their time."},
    {608, "the process died in a handler",
     "A signal that ends the process (a segmentation fault, an abort, a bus error, a floating point exception, an "
     "illegal instruction) came on a thread that was in the call that the message names. The process ends with that "
     "signal. Run `millrace check-handler` on the handler, or build its plugin with -fsanitize=address."},
    {609, "a plugin ended the process",
     "exit() was called in the call that the message names; the command ends with code 1 instead. A handler that has "
     "seen enough calls tick.end(). What a plugin ends by _exit() nobody can see: the process is gone, with that "
     "code."},
    {610, "a run was ended before it had drained",
     "A second signal, or SIGQUIT, ended a run that was still draining. The report that was asked for was written; "
     "what "
     "was in flight is lost. The exit code is 128 and the signal."},
    {611, "a source that does not keep its clock's rate",
     "Clocks that wait for each other hold as many ticks as their rate says. The source of this one gave more in that "
     "time, or paused while a result was owed. Give the clock the rate that the source really has, or more in_flight."},
    {612, "a thread could not be started",
     "The system gave the process no more threads. Each worker is one (--threads), and so are each source that waits, "
     "each stream of a device, the log and what watches the run. A user may have as many as `ulimit -u` says, a "
     "container as many as pids.max of its control group, and each takes address space, which `ulimit -v` limits. "
     "Nothing was run."},
};

// Family 7: devices.
const std::vector<CodeInfo> kDevice = {
    {701, "out of device memory",
     "An allocation on the device failed although the plan fits: another process, or a library that allocates for "
     "itself, holds the rest."},
    {702, "an illegal access on a device",
     "A body touched memory that is not its own: freed, of another domain, or beyond a buffer's end. The device's "
     "context cannot be used after it. Run with the device's check mode to get the handler, the port and the buffer."},
    {703, "a device was lost",
     "The device has finished nothing for 10 s, or a fault has poisoned its context. What was in flight on it is gone, "
     "and nobody waits for it: the report is written and the command leaves with code 5. The message names what was "
     "under way; `run --sync-devices` submits bodies one by one, so that it is the one that failed."},
};

std::vector<CodeInfo> joined() {
  std::vector<CodeInfo> all;
  for (const auto* family : {&kUsage, &kText, &kGraph, &kPlan, &kPlugin, &kRun, &kDevice})
    all.insert(all.end(), family->begin(), family->end());
  return all;
}

} // namespace

const std::vector<CodeInfo>& error_codes() {
  static const std::vector<CodeInfo> codes = joined();
  return codes;
}

const CodeInfo* find_code(int code) {
  const auto& codes = error_codes();
  const auto found = std::find_if(codes.begin(), codes.end(), [&](const CodeInfo& info) { return info.code == code; });
  return found == codes.end() ? nullptr : &*found;
}

int parse_code(const std::string& text) {
  const bool prefixed = text.size() > 2 && (text[0] == 'M' || text[0] == 'm') && (text[1] == 'R' || text[1] == 'r');
  const std::string digits = prefixed ? text.substr(2) : text;
  if (digits.empty() || digits.size() > 4) return 0;
  int code = 0;
  for (char c : digits) {
    if (!std::isdigit(static_cast<unsigned char>(c))) return 0;
    code = code * 10 + (c - '0');
  }
  return code;
}

} // namespace millrace
