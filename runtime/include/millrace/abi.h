/* The boundary between millrace and a plugin: plain C tables, one exported symbol, nothing of C++ across it.
 *
 * Problem. A plugin and the runtime are built at different times, by different compilers, against different
 * standard libraries. Everything that crosses between them must have one meaning for both, must be checkable when
 * the plugin is loaded, and must cost a handler's message no more than an indirect call.
 *
 * Why this way. Every table begins with its own size, so a reader can tell what a writer knew. A plugin exports
 * one function that returns its table; the runtime hands each instance a table of its own functions. Handlers
 * describe themselves by being constructed once: the declaration of ports, parameters and traits is read from
 * that instance and from nowhere else. A payload begins with a 256-byte POD record (mr_value). Its bytes follow in
 * the same block, so that one copy moves both, to a device or over a network, and no code on the way needs to know
 * the type.
 *
 * Invariants.
 *  - mr_value is exactly 256 bytes; tests/plugin/abi_golden.txt holds the layout of everything here.
 *  - Until 1.0 MR_ABI_VERSION must match exactly; a mismatch is refused with both numbers. A function may be added at
 *    the end of mr_host without another version: a plugin looks at `size` before it calls that function.
 *  - No function of a plugin lets an exception out; it reports a failure by mr_host.fail and MR_ERROR.
 *  - A plugin is never unloaded while anything of it lives.
 *  - Pointers in declarations live as long as the instance; pointers in an mr_tick until the call returns.
 *  - `process` never runs twice at a time for one instance. `interrupt` may come from any thread.
 *  - Functions of different instances may run at the same time, `probe` of sources too.
 *
 * This is not a stable ABI yet (1.0 makes it one), and not a C convenience API: authors use handler.h.
 */
#ifndef MILLRACE_ABI_H
#define MILLRACE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_ABI_VERSION 14u
#define MR_PLUGIN_SYMBOL "millrace_plugin"
#define MR_EXPORT __attribute__((visibility("default")))

#define MR_PLANES_MAX 4u
#define MR_RANK_MAX 8u
#define MR_ITEMS_MAX 64u /* of one call of process_items */

typedef int32_t mr_status;
enum {
  MR_OK = 0,
  MR_PENDING = 1, /* this firing is published later (mr_host.defer was called) */
  MR_NOT_YET = 2, /* a source has no value for now */
  MR_END = 3,     /* a source has no more values */
  MR_ERROR = -1,  /* the sentence was given to mr_host.fail */
  MR_INTERRUPTED = -2
};

/* ---- payloads ---------------------------------------------------------------------------------------- */

enum {
  MR_KIND_ANY = 0,
  MR_KIND_IMAGE = 1,
  MR_KIND_TENSOR = 2,
  MR_KIND_PACKET = 3,
  MR_KIND_RECORDS = 4,
  MR_KIND_OBJECT = 5
};

enum {
  MR_PIXEL_NONE = 0,
  MR_PIXEL_GRAY8 = 1,
  MR_PIXEL_RGB8 = 2,
  MR_PIXEL_BGR8 = 3,
  MR_PIXEL_RGBA8 = 4,
  MR_PIXEL_BGRA8 = 5,
  MR_PIXEL_NV12 = 6,
  MR_PIXEL_I420 = 7,
  MR_PIXEL_P010 = 8,
  MR_PIXEL_COUNT = 9
};

enum { MR_COLOR_SRGB = 0, MR_COLOR_BT601 = 1, MR_COLOR_BT709 = 2, MR_COLOR_BT2020 = 3 };
enum { MR_RANGE_FULL = 0, MR_RANGE_LIMITED = 1 };

/* DLPack's codes, so that a tensor needs no translation. */
enum { MR_DTYPE_INT = 0, MR_DTYPE_UINT = 1, MR_DTYPE_FLOAT = 2, MR_DTYPE_BFLOAT = 4 };

/* Sets of element types: those that a port takes or makes. */
enum {
  MR_DTYPES_INT8 = 1u,
  MR_DTYPES_INT16 = 2u,
  MR_DTYPES_INT32 = 4u,
  MR_DTYPES_INT64 = 8u,
  MR_DTYPES_UINT8 = 16u,
  MR_DTYPES_UINT16 = 32u,
  MR_DTYPES_UINT32 = 64u,
  MR_DTYPES_UINT64 = 128u,
  MR_DTYPES_FLOAT16 = 256u,
  MR_DTYPES_FLOAT32 = 512u,
  MR_DTYPES_FLOAT64 = 1024u,
  MR_DTYPES_BFLOAT16 = 2048u,
  MR_DTYPES_ALL = 4095u
};

/* DISCONTINUITY: the first value of a source that began again, after a failure or an absence. What a handler knows of
 * the values before it no longer holds. */
enum { MR_FLAG_KEYFRAME = 1u, MR_FLAG_DISCONTINUITY = 2u };

typedef struct mr_header {
  uint64_t schema;       /* hash of the payload type's name (mr::schema_of) */
  uint64_t layout;       /* hash of the record's memory layout; 0 if the kind is enough to know it */
  uint32_t kind;         /* MR_KIND_* */
  uint32_t stream;       /* which camera or file; the runtime sets it in values that a handler with a stream makes */
  int64_t pts_ns;        /* presentation time on the clock's media time base */
  int64_t duration_ns;   /* 0: unknown */
  uint32_t flags;        /* MR_FLAG_* */
  uint32_t present;      /* 0: the firing stayed silent; a device may write this word */
  uint64_t extent_bytes; /* bytes in use after this mr_value, at most the block's capacity */
} mr_header;

typedef struct mr_plane {
  uint64_t offset; /* from the first byte after the mr_value */
  uint32_t stride; /* bytes from row to row */
  uint32_t rows;
} mr_plane;

typedef struct mr_image {
  uint32_t format; /* MR_PIXEL_* */
  uint32_t width, height;
  uint32_t plane_count;
  uint32_t color;                  /* MR_COLOR_* */
  uint32_t range;                  /* MR_RANGE_* */
  uint32_t primaries, transfer;    /* code points of ITU-T H.273; 0: not said */
  uint32_t aspect_num, aspect_den; /* a pixel's width to its height; 0/0: square */
  mr_plane planes[MR_PLANES_MAX];
} mr_image;

typedef struct mr_tensor {
  uint8_t dtype_code; /* MR_DTYPE_* */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  uint32_t rank;
  int64_t shape[MR_RANK_MAX];
  int64_t strides[MR_RANK_MAX]; /* in elements */
} mr_tensor;

typedef struct mr_packet {
  uint32_t codec; /* FourCC */
  uint32_t reserved;
  int64_t dts_ns;
} mr_packet;

typedef struct mr_records {
  uint64_t count;
  uint64_t record_size;
} mr_records;

typedef struct mr_object {
  void* pointer;
  void (*release)(void* pointer); /* called once, from any thread, when the block is reused */
} mr_object;

typedef struct mr_value {
  mr_header header;
  union {
    mr_image image;
    mr_tensor tensor;
    mr_packet packet;
    mr_records records;
    mr_object object;
    uint8_t room[200];
  } as;
} mr_value;

/* ---- formats: what the plan knows of a payload before the first tick -------------------------------------- */

/* A field of a record: one number, or an array of numbers. */
typedef struct mr_field {
  const char* name;
  uint32_t offset; /* bytes from the record's first byte */
  uint32_t count;  /* how many numbers; 1: no array */
  uint8_t dtype_code, dtype_bits;
  uint16_t reserved;
  uint32_t reserved_too;
} mr_field;

/* Describes a record type to code that shows records without knowing their type. Lives as long as its plugin. */
typedef struct mr_record_type {
  uint32_t size;
  uint32_t field_count;
  const char* name; /* the type's schema is the hash of this name */
  const mr_field* fields;
} mr_record_type;

enum { MR_DIM_FIXED = 0, MR_DIM_BOUNDED = 1, MR_DIM_UNKNOWN = 2 };

/* In the order of image.flip's modes. */
enum {
  MR_TURN_NONE = 0,
  MR_TURN_HORIZONTAL = 1, /* swaps left and right */
  MR_TURN_VERTICAL = 2,
  MR_TURN_BOTH = 3,
  MR_TURN_ROTATE90 = 4, /* clockwise */
  MR_TURN_ROTATE270 = 5,
  MR_TURN_TRANSPOSE = 6,
  MR_TURN_TRANSVERSE = 7,
  MR_TURN_COUNT = 8
};

typedef struct mr_format {
  uint32_t size;
  uint32_t kind;
  uint64_t schema, layout;
  uint64_t pixel_formats; /* bit set of the MR_PIXEL_* that are accepted; one bit when settled; 0: any */
  uint32_t width, height; /* image; the maximum if size_kind is bounded; 0: unknown */
  uint32_t size_kind;     /* MR_DIM_* of width and height */
  uint32_t color, range;
  uint8_t dtype_code, dtype_bits;
  uint16_t dtype_lanes;
  uint32_t rank;
  int64_t shape[MR_RANK_MAX]; /* tensor; the maximum of a dimension that is bounded */
  uint32_t shape_kind[MR_RANK_MAX];
  uint64_t record_size, record_count_max;
  /* packet: the largest size; image: the least size of a block, more than the layout needs if a decoder pads its
   * pictures; other kinds: computed by the plan */
  uint64_t bytes_max;
  uint32_t primaries, transfer;    /* image: as in mr_image */
  uint32_t aspect_num, aspect_den; /* image: as in mr_image */
  uint32_t turn;                   /* image of a source: the MR_TURN_* that makes it upright, which a step applies */
  uint32_t held;                   /* output: how many blocks the handler may hold (mr_host.borrow) */
  uint32_t adopted;                /* output: 1: it gives values by mr_host.adopt alone, whose blocks have no bytes */
  /* The sets are for ports. A settled format has its element type in dtype_* and its dimensions in rank. */
  uint32_t dtypes;               /* tensor: set of the MR_DTYPES_* that are accepted; 0: any */
  uint32_t ranks;                /* tensor: 1 << rank for each rank that is accepted; 0: any */
  const mr_record_type* records; /* records: their type; null: not described */
} mr_format;

typedef struct mr_facts {
  uint32_t size;
  uint32_t live;              /* 1: cannot wait and cannot be slowed (a camera) */
  int64_t rate_num, rate_den; /* beats a second; rate_num 0: no rate of its own */
  int64_t tick_count;         /* -1: unknown or endless */
  /* The time of one call with these parameters, for each kind of device that a body may run on. 0: unknown; negative:
     the body does not run there with these parameters. */
  int64_t cost_cpu_ns, cost_gpu_ns;
  /* 1: the calls of this source wait for something outside, such as the writer of a pipe; like MR_TRAIT_BLOCKING, but
     for this instance alone. */
  uint32_t waits;
  /* 1: with these parameters there is no GPU body. A simulated device may still run the CPU body. */
  uint32_t no_gpu_body;
  /* The unit of this source's times, in seconds: a container rounds the time of each value to a multiple of it, such as
     1/1000 s in Matroska. time_num 0: unknown, the times are right to the nanosecond. */
  int64_t time_num, time_den;
  /* 1: the other sources of its clock choose the clock's mode and rate, and this one gives what it has by then. It
   * chooses only where it is alone. */
  uint32_t follows;
} mr_facts;

/* ---- declarations ------------------------------------------------------------------------------------- */

enum { MR_INPUT = 0, MR_OUTPUT = 1 };
enum { MR_MEMORY_FOLLOWS = 0, MR_MEMORY_CPU = 1, MR_MEMORY_GPU = 2 };
enum {
  MR_PORT_OPTIONAL = 1u, /* input: the handler fires without it */
  MR_PORT_MANY = 2u,     /* input: takes a list of edges */
  MR_PORT_FORWARDS = 4u, /* output: may publish the input's own buffer (see like) */
  MR_PORT_IN_PLACE = 8u, /* output: may be written over the input's buffer (see like) */
  MR_PORT_REPEATS = 16u, /* output: may publish the buffer of the handler's only input if the formats are equal */
  MR_PORT_SQUARE = 32u,  /* input: takes square pixels only; a step of the plan scales other pictures */
  /* The bytes of the items of a call lie in one piece of memory, in the items' order and without gaps. Tensors of one
   * element type, whose dimensions but the first are equal. */
  MR_PORT_DENSE = 64u,
  /* input, with OPTIONAL: what the handler is for comes by it. If no such input is connected, the handler does nothing,
   * and the plan says so. */
  MR_PORT_IDLE_WITHOUT = 128u,
  /* input: an edge for which the pipeline gives no policy is a queue of depth 1 that drops the oldest value, so that
   * the reader gets the newest one and holds nobody up. */
  MR_PORT_NEWEST = 256u,
  /* output: a value counts until its successor comes, which is seldom, or for the whole run. A device that reads it by
   * `latest` gets each value once, and has room for one value and its successor. */
  MR_PORT_LASTING = 512u
};

typedef struct mr_port {
  uint32_t size;
  uint32_t direction; /* MR_INPUT, MR_OUTPUT */
  const char* name;
  const char* help;
  const char* type_name; /* "Image", "Tensor", "Records<Box>", … as people read it */
  mr_format accepts;     /* the formats that an input takes or an output may make; an unset field allows any */
  uint32_t flags;        /* MR_PORT_* */
  uint32_t memory;       /* MR_MEMORY_* */
  uint32_t many_max;     /* with MR_PORT_MANY: the most edges */
  uint32_t keeps;        /* input: how many past values stay valid */
  int32_t like;          /* output: port index of the input whose format it has; -1: configure sets the format */
  uint32_t reserved;
} mr_port;

enum { MR_PARAM_BOOL = 0, MR_PARAM_INT = 1, MR_PARAM_FLOAT = 2, MR_PARAM_STRING = 3, MR_PARAM_JSON = 4 };
/* A relative path begins at the folder of the pipeline file that gives it; the handler receives the complete path.
 * A text with "://" is an address and "-" is a standard stream: both stay as they are. */
enum {
  MR_PARAM_LIVE = 1u,
  MR_PARAM_REQUIRED = 2u,
  MR_PARAM_HAS_RANGE = 4u,
  MR_PARAM_READS_PATH = 8u,   /* string: names a file, or files by a pattern, that the handler reads */
  MR_PARAM_WRITES_PATH = 16u, /* string: names a file, or files by a pattern, that the handler writes */
  MR_PARAM_DURATION = 32u,    /* number of seconds; its text may have a unit: 500ms, 5s, 10min, 2h */
  /* Used with WRITES_PATH: the handler writes numbered pieces instead of one file if a parameter with CUTS_PATHS is not
   * empty. "take-%03d.mp4" names the pieces. "take.mp4", which has no place for a number, becomes "take-000.mp4" and so
   * on. */
  MR_PARAM_IN_PIECES = 64u,
  MR_PARAM_CUTS_PATHS = 128u, /* string: if it is not empty, the paths with IN_PIECES are written in pieces */
  /* int: how many threads compute one call, the caller among them; the handler's library starts the others. If the text
   * gives none, or 0, the plan sets a share of the threads that the run was given. */
  MR_PARAM_THREADS = 256u,
  /* string: the name of an object of the run (mr_host.share), of the kind mr_param.object. One handler of a pipeline
   * owns it, and others on the same node may join it: the plan refuses a second owner, and one that joins no owner. */
  MR_PARAM_OWNS = 512u,
  MR_PARAM_JOINS = 1024u
};

typedef struct mr_param_value {
  uint32_t type; /* MR_PARAM_* */
  uint32_t reserved;
  union {
    int64_t boolean, integer;
    double real;
    const char* text; /* string, JSON: UTF-8, ends with a zero; copied by the handler */
  } as;
} mr_param_value;

/* For a handler with MR_TRAIT_CONVERTS: the property of the output picture that a parameter sets. */
enum {
  MR_ROLE_NONE = 0,
  MR_ROLE_PIXELS = 1, /* string: the pixel format, one of its choices; MATRIX and RANGE may accompany it */
  MR_ROLE_MATRIX = 2, /* string: bt601, bt709, bt2020 */
  MR_ROLE_RANGE = 3,  /* string: full, limited */
  MR_ROLE_TURN = 4,   /* string: how the picture is turned, as MR_TURN_* are called: horizontal, rotate90, … */
  MR_ROLE_WIDTH = 5,  /* int, with MR_ROLE_HEIGHT: the size in square pixels */
  MR_ROLE_HEIGHT = 6,
  MR_ROLE_COUNT = 7
};

typedef struct mr_param {
  uint32_t size;
  uint32_t type;
  const char* name;
  const char* help;
  const char* unit; /* "" if there is none */
  mr_param_value default_value;
  double min, max;            /* with MR_PARAM_HAS_RANGE */
  const char* const* choices; /* ends with a null pointer; null: any text */
  uint32_t flags;
  uint32_t role;      /* MR_ROLE_* */
  const char* object; /* with MR_PARAM_OWNS or MR_PARAM_JOINS: the kind of object, as in "viewer"; else null */
} mr_param;

enum {
  MR_TRAIT_STATELESS = 1u,
  MR_TRAIT_BLOCKING = 2u,
  MR_TRAIT_CAPTURABLE = 4u,
  MR_TRAIT_HOST_HEAVY = 8u,
  MR_TRAIT_CPU_BODY = 16u,
  MR_TRAIT_CUDA_BODY = 32u,
  MR_TRAIT_FINISH = 64u,         /* has a host body that runs after the device is done */
  MR_TRAIT_NO_ALLOCATION = 128u, /* process allocates nothing from the heap */
  MR_TRAIT_ASYNCHRONOUS = 256u,  /* publishes deferred firings outside its calls, from threads of its own */
  MR_TRAIT_DRAINS_FREELY = 512u, /* drain followed by reset costs only time: the results are the same as without them */
  /* Converts a picture: the result differs only in the properties that the parameters with a role set. The plan inserts
   * the handler between an output and a reader that needs the picture so. */
  MR_TRAIT_CONVERTS = 1024u
};

typedef struct mr_declaration {
  uint32_t size;
  uint32_t traits; /* MR_TRAIT_* */
  const mr_port* ports;
  uint32_t port_count;
  uint32_t param_count;
  const mr_param* params;
  uint32_t max_pending;
  uint32_t gap;         /* how many ticks without a firing may pass while a firing is pending */
  const char* thread;   /* runs on the thread of this name; null: any worker */
  int64_t cost_hint_ns; /* the time of one call, as the author expects it; 0: unknown */
  /* Bytes of device memory that the GPU body works in, kept from tick to tick; configure may set this. */
  uint64_t scratch_bytes;
  uint32_t items_max; /* the most items of a call of process_items, at most MR_ITEMS_MAX; 0: it has no such body */
  /* MiB of host memory that the CPU body takes from the system, such as the weights of a network; configure may set
   * this. The plan counts them. */
  uint32_t host_mib;
  /* Bytes of state that the runtime keeps for the handler, in the memory of the body that runs; configure may set this.
   * They are zero before the first tick, after each call of reset, and when the handler starts again. Not 0 here if
   * configure may set more than 0. */
  uint64_t state_bytes;
  /* MiB of the device's memory that the GPU body takes by itself, such as a texture or what a library works in;
   * configure may set this. The plan counts them. */
  uint32_t device_mib;
} mr_declaration;

/* ---- a tick as a handler sees it -------------------------------------------------------------------------- */

typedef struct mr_tick_info {
  uint32_t clock;
  /* Rises when the clock begins anew, because its stream does; the index goes on. A new plan does not raise it. */
  uint32_t epoch;
  uint64_t index;
  int64_t media_time_ns;
  int64_t deadline_ns; /* on the run's time, which is the monotonic clock unless the program gave another; 0: none */
  uint64_t trace_id;
} mr_tick_info;

typedef struct mr_input {
  const mr_value* value; /* null: empty */
  const uint8_t* data;   /* the bytes, in the body's own domain */
} mr_input;

enum { MR_OUTPUT_SILENT = 0, MR_OUTPUT_OWN = 1, MR_OUTPUT_FORWARDED = 2, MR_OUTPUT_ADOPTED = 3 };

typedef struct mr_output {
  mr_value* value;
  uint8_t* data;
  uint64_t capacity; /* bytes at data */
  uint32_t state;    /* MR_OUTPUT_* */
  uint32_t source;   /* forwarded: the flat index of the input whose buffer it publishes */
  uint64_t token;    /* for the runtime: identifies the block */
} mr_output;

enum { MR_DEVICE_CPU = 0, MR_DEVICE_CUDA = 1, MR_DEVICE_SIM = 2 /* in mr_device_info alone */ };

/* The tick in device memory, for kernels: a captured GPU body is not called on each tick. */
typedef struct mr_device_tick {
  uint64_t index;
  int64_t media_time_ns;
  uint64_t sequence; /* for the runtime: the number that signals the tick's fence */
} mr_device_tick;

typedef struct mr_host mr_host;

typedef struct mr_tick {
  uint32_t size;
  uint32_t device; /* MR_DEVICE_*: which body was called */
  const mr_tick_info* info;
  const mr_input* inputs; /* flat: a port that takes a list has one entry for each edge */
  mr_output* outputs;
  uint32_t input_count, output_count;
  const mr_host* host;
  void* context;       /* for the runtime */
  void* native_stream; /* cudaStream_t on cuda; null on cpu */
  uint32_t stands_in;  /* 1: this CPU body runs on a simulated device, in place of a GPU body */
  uint32_t stream;     /* the index of the handler's stream in its set, from 0; 0 also outside streams */
  /* On cuda, else null. All three are the same for every tick of a slot, so that a body can be captured. */
  const mr_device_tick* device_tick; /* in device memory, written before the body's kernels run */
  void* scratch;                     /* in device memory: mr_declaration.scratch_bytes */
  const void* library;               /* kernels of the built-in handlers: handlers/gpu/library.h */
  uint64_t ended;                    /* a bit for each of the first 64 inputs: it is empty and gets no more values */
  /* In the memory of the body: mr_declaration.state_bytes, at one address as long as the handler runs. Null in finish,
   * and if they are 0. */
  void* state;
  uint32_t follows; /* 1: a source that said so (mr_facts.follows), on a clock whose mode and rate others choose */
} mr_tick;

/* A block of an output that a handler holds. */
typedef struct mr_block {
  uint8_t* data;
  uint64_t capacity; /* bytes at data */
  uint64_t token;    /* for the runtime: identifies the block */
} mr_block;

/* The stream and the memory of a GPU body. */
typedef struct mr_gpu {
  uint32_t size;
  uint32_t reserved;
  void* native_stream; /* a cudaStream_t */
  void* scratch;       /* in device memory: mr_declaration.scratch_bytes; null if they are 0 */
  const void* library; /* as mr_tick has it; only if `size` says that there is room */
} mr_gpu;

/* The device that a handler's body runs on, and its hardware. What is not known, or is not there, is 0. */
typedef struct mr_device_info {
  uint32_t size;
  uint32_t kind;    /* MR_DEVICE_* */
  uint32_t ordinal; /* among those of its kind, as in "cuda:1" */
  uint32_t multiprocessors;
  uint32_t compute_major, compute_minor; /* compute capability */
  uint64_t shared_bytes_max;             /* shared memory that a kernel can be allowed for a block */
  uint64_t memory_bytes;                 /* all of the device's memory; on a simulated device its limit */
  const char* name;                      /* "NVIDIA H200"; on cpu and simulated devices that of the domain */
} mr_device_info;

/* ---- pages of handlers ---------------------------------------------------------------------------------------- */

/* A file of a handler's page. Lives until the handler's stop is called, as all of an mr_site does. */
typedef struct mr_site_file {
  const char* name; /* "view.js"; "index.html" is the page itself */
  const uint8_t* bytes;
  uint64_t size;
} mr_site_file;

/* A message to a browser. The body is not copied: it stays readable until release is called, once, from any thread. */
typedef struct mr_message {
  uint32_t size;
  uint32_t is_text; /* 1: UTF-8; else binary */
  const uint8_t *head, *body;
  uint64_t head_bytes, body_bytes; /* the head is copied, and comes first */
  void (*release)(void* context);  /* null: the body is copied too */
  void* context;
} mr_message;

/* A page that is open in a browser and was let in, as the runtime shows it to a handler. It is there from `open` until
 * `close` of its mr_site has returned. Any thread may call its functions meanwhile; none of them waits. */
typedef struct mr_peer mr_peer;
struct mr_peer {
  uint32_t size;
  uint32_t steers; /* 1: its link lets it steer; else it watches */
  uint64_t number; /* from 1, each once in a run */
  void (*send)(mr_peer* peer, const mr_message* message);
  /* Ends it, once what was sent before has gone out. The code is a WebSocket's: 1000, or 4000 to 4999. */
  void (*end)(mr_peer* peer, uint32_t code, const char* reason);
};

/* A page of a handler: files, and a WebSocket beside them, "channel". The program's one server serves it, and lets in
 * whoever has a token of the run. The functions are called by the thread of that server, one at a time, and must not
 * wait; `close` by the thread that is about to stop the handler, too. */
typedef struct mr_site {
  uint32_t size;
  uint32_t file_count;
  const char* path;   /* "view/main": letters, digits, '-', '_', '.' and '/' */
  const char* title;  /* as links to the page are called: "main" */
  const char* listen; /* "HOST:PORT": where the server is to listen; "": where it listens, or on the loopback */
  const mr_site_file* files;
  void* context;
  void (*open)(void* context, mr_peer* peer);
  void (*take)(void* context, mr_peer* peer, const uint8_t* bytes, uint64_t size, uint32_t is_text);
  void (*close)(void* context, mr_peer* peer);
} mr_site;

/* The kinds of faults that have an error code of their own: the number is the code, so 906 is printed as MR0906. */
enum {
  MR_FAULT_NONE = 0, /* the code of the function that failed */
  MR_FAULT_MODEL_MISSING = 901,
  MR_FAULT_MODEL_ENGINE = 902,
  MR_FAULT_MODEL_FILE = 903,
  MR_FAULT_MODEL_PORTS = 904,
  MR_FAULT_MODEL_TYPE = 905,
  MR_FAULT_MODEL_SHAPE = 906,
  MR_FAULT_MODEL_VALUE = 907,
  MR_FAULT_MODEL_CALL = 908,
  MR_FAULT_MODEL_MEMORY = 909,
  MR_FAULT_MODEL_OPERATOR = 910
};

enum { MR_LOG_DEBUG = 0, MR_LOG_INFO = 1, MR_LOG_WARNING = 2, MR_LOG_ERROR = 3 };

/* What the runtime offers to a handler. `instance` is the context that `create` was given. */
struct mr_host {
  uint32_t size;
  uint32_t abi_version;
  /* Gives an output a block of planned memory: fills value, data, capacity and token. Never blocks. A second call in
   * the same firing gives the same block. MR_ERROR if `bytes` is more than planned; the sentence is set. */
  mr_status (*allocate)(mr_tick* tick, uint32_t output, uint64_t bytes);
  /* Gives an output the input's bytes for writing: the input's own block if the plan allows it, else a new block with a
   * copy. */
  mr_status (*modify)(mr_tick* tick, uint32_t output, uint32_t input);
  /* Publishes foreign memory and fills value. `data` must stay readable until release is called: once, from any thread.
   * MR_ERROR, after release was called, if the output has a value already or `bytes` is more than planned. */
  mr_status (*adopt)(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes, void (*release)(void*),
                     void* release_context);
  /* Makes this firing pending. The returned tick lives until publish. Null if max_pending firings are pending. */
  mr_tick* (*defer)(mr_tick* tick);
  /* Settles a deferred firing. Firings are published in the order of their ticks. Only the thread that is inside a call
   * of the handler may call this; with MR_TRAIT_ASYNCHRONOUS any thread may. MR_ERROR if the firing is no longer owed,
   * for example after a drain that left it. */
  mr_status (*publish)(mr_tick* deferred);
  /* Gives the sentence of a failure. Inside a call of the handler the last sentence before MR_ERROR counts. A sentence
   * from a thread of the handler's own is a failure by itself. */
  void (*fail)(void* instance, const char* sentence);
  void (*log)(void* instance, uint32_t level, const char* sentence);
  /* Monotonic nanoseconds of the run's clock (virtual in tests). */
  int64_t (*now_ns)(void* instance);
  /* Borrows a block of an output before its tick is known. The output's format says how many blocks may be `held`. The
   * handler may read the block for as long as it holds it, also after it gave it to a tick. Any thread may call this
   * between start and stop; it never blocks. MR_ERROR if that many are held already, or none was planned; no sentence
   * is set. */
  mr_status (*borrow)(void* instance, uint32_t output, mr_block* block);
  /* Makes a borrowed block the output's value of this tick, and of no other tick. The handler still holds the block.
   * Fills value, data, capacity and token as allocate does. */
  mr_status (*give)(mr_tick* tick, uint32_t output, uint64_t token);
  /* Ends the hold of a borrowed block. Called once for each block, from any thread, until stop has returned. */
  void (*give_back)(void* instance, uint32_t output, uint64_t token);
  /* Adds to a number of the report, in `handlers.NAME.counts`. `name` is a few words joined by underscores. Any thread
   * may call this. It is not free: do not call it on every tick of a steady run. */
  void (*count)(void* instance, const char* name, int64_t add);
  /* As allocate, for one output of all items of a call: item i gets bytes[i]. If the port is MR_PORT_DENSE, they lie in
   * one piece, in the items' order and without gaps. */
  mr_status (*allocate_items)(mr_tick* const* items, uint32_t count, uint32_t output, const uint64_t* bytes);
  /* This item of the call fails, with this sentence; the others do not. */
  void (*fail_item)(mr_tick* item, const char* sentence);
  /* As fail, for a fault of one of the kinds MR_FAULT_*. A number that the runtime does not know is MR_FAULT_NONE. The
   * table of a runtime without this function ends before it, as `size` says; a plugin then calls fail. */
  void (*fail_as)(void* instance, uint32_t fault, const char* sentence);
  /* Fills in where the GPU body of this handler runs. It is the same from the call of start until stop has returned.
   * MR_ERROR if another body runs, or none; no sentence is set. A table may end before it, as with fail_as. */
  mr_status (*find_gpu)(void* instance, mr_gpu* gpu);
  /* The object of this name that the handlers of one plugin share in one run; null, with the sentence set, outside
   * start and what follows it. The first call makes it. Each handler that called holds it until its stop has returned
   * or its start has failed, and after the last one it is dropped. make returns null if it fails. */
  void* (*share)(void* instance, const char* name, void* (*make)(void* context), void (*drop)(void* object),
                 void* context);
  /* Serves a page from now on, until the handler's stop is called. MR_ERROR, with the sentence set: another page has
   * the path, the server cannot listen there, or the program has none. */
  mr_status (*serve)(void* instance, const mr_site* site);
};

/* ---- a handler type and a plugin -------------------------------------------------------------------------- */

typedef struct mr_handler_type {
  uint32_t size;
  uint32_t reserved;
  const char* type;    /* "family.name" */
  const char* summary; /* one sentence */
  const char* manual;  /* its class comment, ends with a snippet; may be empty */
  mr_status (*create)(const mr_host* host, void* instance, void** self, const mr_declaration** declaration);
  void (*destroy)(void* self);
  mr_status (*set_param)(void* self, uint32_t param, const mr_param_value* value);
  /* Tells how many edges each port has: 0 or 1, or more for MR_PORT_MANY. Called once, before configure. */
  mr_status (*bind)(void* self, const uint32_t* edge_counts);
  mr_status (*probe)(void* self, mr_facts* facts);
  /* Sets the output formats from the input formats, both flat. Called again when the plan tries another choice. */
  mr_status (*configure)(void* self, const mr_format* inputs, uint32_t input_count, mr_format* outputs,
                         uint32_t output_count);
  mr_status (*start)(void* self);
  mr_status (*process)(void* self, mr_tick* tick);
  mr_status (*process_cuda)(void* self, mr_tick* tick);
  /* The CPU body for several items, each with a tick of its own. MR_ERROR is a failure of all of them. With it
   * `process` is there too, and takes one item. Null: it takes one tick a call. */
  mr_status (*process_items)(void* self, mr_tick* const* items, uint32_t count);
  mr_status (*finish)(void* self, mr_tick* tick);
  mr_status (*drain)(void* self);
  mr_status (*stop)(void* self);
  mr_status (*reset)(void* self);
  void (*interrupt)(void* self);
  /* Removes from `accepts` the formats of a port that the parameters rule out, before formats are settled. `accepts`
   * comes as it was declared. Null: every port is as declared. */
  mr_status (*narrow)(void* self, uint32_t port, mr_format* accepts);
  /* Lists the choices that this type has on this machine, such as codecs: calls `say` once for each, the most important
   * first. Null: no choice depends on the machine. Needs no instance. */
  void (*offers)(void* context, void (*say)(void* context, const char* part, const char* name, const char* words));
  /* As finish, for all items of a call of process_items. */
  mr_status (*finish_items)(void* self, mr_tick* const* items, uint32_t count);
  /* Called in place of start, with the device of the body. On cuda it is the current device of the calling thread, then
   * and during stop. Null: start is called. */
  mr_status (*start_on)(void* self, const mr_device_info* device);
} mr_handler_type;

typedef struct mr_plugin {
  uint32_t size;
  uint32_t abi_version;
  const char* name;
  const char* version;
  const mr_handler_type* const* types;
  uint32_t type_count;
  uint32_t reserved;
} mr_plugin;

typedef const mr_plugin* (*mr_plugin_entry)(void);

#ifdef __cplusplus
}
static_assert(sizeof(mr_value) == 256, "a block's prefix is 256 bytes");
#endif

#endif /* MILLRACE_ABI_H */
