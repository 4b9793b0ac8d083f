/* py.h: the front. The only room with Python.h: types, argument parsing, exceptions, provenance, interchange, the GIL.
 *
 * Every op is one C function, a builtin of the module and a method of DeviceArray alike: as a method self is the first
 * parameter, as a function self is the module. */
#ifndef DT_PY_H
#define DT_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../core/ops/ops.h"
#include "../core/transfer.h"
#include "examples.h"
#include "signatures.h"

#define PY_CACHED_DEVICES 16
#define PY_MAX_ARGS 12

/* Ops that answer in a named tuple (values, indices): the type of what f returns is f_result. */
#define PY_PAIRS(X) X(max) X(min) X(cummax) X(cummin) X(sort) X(topk) X(kthvalue) X(median) X(nanmedian) X(mode)
#define PY_PAIR(name) PY_PAIR_##name,
enum { PY_PAIRS(PY_PAIR) PY_NPAIRS };
#undef PY_PAIR

typedef struct {
    PyTypeObject *array_type, *dtype_type, *device_type, *generator_type, *stream_type, *event_type, *node_type;
    PyTypeObject *size_type;
    PyTypeObject *pair_types[PY_NPAIRS];
    PyObject *dtypes[DT_NDTYPES];
    PyObject *cpu;
    PyObject *cuda[PY_CACHED_DEVICES];
    PyObject *errors;                         /* devtensor._errors, imported when first needed */
    PyObject *autocast_rules, *autocast_hook; /* of devtensor._dtypes.autocast; NULL until that is imported */
    PyObject *override_hook, *no_override;    /* of devtensor._interchange.overrides, likewise */
} py_state;

extern PyModuleDef py_module;

/* The state of the module that self belongs to; self is the module or an instance of one of its types. */
py_state *py_state_of(PyObject *self);

/* ---------------------------------------------------------------- DeviceArray: device_array.c, origin.c */

/* One step in the making of an array: counted, and shared by the arrays that come from it. parent is the step that made
 * the operand whose device and dtype the result has, NULL where there was none. */
typedef struct py_step {
    struct py_step *parent;
    PyObject *code;     /* where: worked out only when someone asks; NULL: not from Python */
    const char *action; /* the op */
    PyObject *called;   /* the outermost function of ours that led to the op; NULL: the user called the op */
    int instruction;
    unsigned refs;
    dt_device device; /* this and dtype are set once the step is a parent */
    uint8_t dtype, depth;
    bool unrecorded;                    /* the user had turned recording off (no_grad) */
    bool elided;                        /* steps between this one and parent are left out */
    bool decides_device, decides_dtype; /* known although parent does not differ, as the steps between did */
} py_step;

typedef struct {
    PyObject_HEAD dt_array array;
    PyObject *weakrefs;
    py_step *step;      /* NULL: there was no memory for it */
    bool persistent;    /* of a Buffer; nothing for other types */
    short busy, wanted; /* ops that read it without the GIL; who waits for their end: data.c */
} py_array;

void py_array_dealloc(PyObject *self);

/* DeviceArray and every class derived from it inherit this slot, which nothing else has. */
int py_array_is_gc(PyObject *object);

static inline bool
py_is_array(PyObject *object)
{
    return Py_TYPE(object)->tp_is_gc == py_array_is_gc;
}

/* Whether it is an array of a class of the user's. DeviceArray, Parameter and Buffer have this deallocator themselves.
 */
static inline bool
py_is_subclassed(PyObject *object)
{
    return py_is_array(object) && Py_TYPE(object)->tp_dealloc != py_array_dealloc;
}

static inline dt_array *
py_array_of(PyObject *object)
{
    return &((py_array *)object)->array;
}

/* An empty array (no storage yet) made by action, from a free list. A plain DeviceArray also for types derived from it.
 */
PyObject *py_array_new(PyTypeObject *type, const char *action);
/* The same of type itself: subclass.c. */
PyObject *py_array_of_type(PyTypeObject *type, const char *action);
/* A new array of type that shares the memory of array, without a history. */
PyObject *py_share(PyTypeObject *type, const char *action, PyObject *array);
/* The array of an operand, whose node knows what was written through other arrays (grad.c). NULL with an exception. */
dt_array *py_written_operand(PyObject *array);
static inline dt_array *
py_operand(PyObject *array)
{
    dt_array *x = py_array_of(array);
    return DT_UNLIKELY(atomic_load_explicit(&x->storage->history, memory_order_relaxed) != NULL)
               ? py_written_operand(array)
               : x;
}
/* A plain DeviceArray that shares the memory of self: attributes.c. */
PyObject *py_array_handle(PyObject *self, const char *action);
/* result, which comes from operands, if status is DT_OK; else it is released and the exception raised (py_raise). */
PyObject *py_finish(PyObject *result, dt_status status, const dt_error *err, PyObject *const *operands,
                    Py_ssize_t noperands);
void py_array_clear_free_list(void);

/* The step that action makes now; NULL without an exception where there is no memory. */
py_step *py_step_new(const char *action);
/* NULL stays NULL. */
py_step *py_step_retain(py_step *step);
/* An Origin, or None. */
PyObject *py_origin_of_step(py_state *state, const py_step *step);
void py_step_release(py_step *step);
/* result, which was just made from operands (also those in tuples and lists). */
PyObject *py_step_link(PyObject *result, PyObject *const *operands, Py_ssize_t noperands);
/* The node that was just hung on array, if any, gets this place. */
void py_step_place(PyObject *array);
/* The step of array becomes its first: what came before was no action of the caller's. */
void py_step_begin(PyObject *array);
/* The Origin of the array, or None. */
PyObject *py_step_origin(py_state *state, PyObject *array);
/* All steps, the latest first: tuples (action, filename, lineno, device, dtype, elided, decides). */
PyObject *py_step_list(py_state *state, PyObject *array);
void py_step_clear_free_list(void);

/* ---------------------------------------------------------------- types: module.c, dtype.c, device.c, random.c */

extern PyType_Spec py_dtype_spec, py_device_spec, py_size_spec, py_generator_spec, py_stream_spec, py_event_spec,
    py_scope_spec, py_node_spec;
PyTypeObject *py_array_type_new(PyObject *module);
int py_parameters_init(PyObject *module, py_state *state);
int py_layer_init(PyObject *module);
int py_dtypes_init(PyObject *module, py_state *state);
int py_devices_init(PyObject *module, py_state *state);

PyObject *py_dtype_object(py_state *state, dt_dtype dtype);
PyObject *py_device_object(py_state *state, dt_device device);
PyObject *py_shape_tuple(int ndim, const int64_t *shape);
/* The same as a Size: what users see of the shape of an array. */
PyObject *py_size_object(py_state *state, int ndim, const int64_t *shape);
/* Whether object is a tuple or a Size, and of no class of the user's. */
bool py_is_tuple(PyObject *object);
/* The entries of a sequence: itself where it is a tuple or a Size, else in a new tuple. */
PyObject *py_tuple_of(PyObject *object);
/* A Python bool, int or float. */
PyObject *py_scalar_object(const dt_scalar *value);
/* NumPy's descriptor for dtype; bfloat16 is ml_dtypes'. */
PyObject *py_numpy_dtype(dt_dtype dtype);
/* The generator in object, or the default one for None. */
dt_generator *py_to_generator(py_state *state, const char *op, PyObject *object);

/* ---------------------------------------------------------------- arguments: args.c, convert.c */

typedef struct {
    const char *op;
    int required;   /* how many must be given */
    int positional; /* how many may be given without their name */
    int varargs;    /* the parameter that takes all further positional values, or -1 */
    const char *names[PY_MAX_ARGS + 1];
    const char *function; /* py_ and its name in Python, or NULL where that is op */
} py_spec;

typedef struct {
    py_state *state;
    PyTypeObject *type; /* DeviceArray */
    const char *op;
    const py_spec *spec;
    PyObject *v[PY_MAX_ARGS]; /* borrowed; NULL: not given */
    PyObject *const *rest;    /* the values for spec->varargs */
    Py_ssize_t nrest;
    unsigned renamed; /* a bit for each parameter given under NumPy's name for it */
    PyObject *answer; /* where py_parse gives -1: what the op returns, NULL with an exception */
} py_args;

/* -1: the op returns out->answer. py_parse_plain leaves autocast out: for ops that write into an operand. */
int py_parse(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
             py_args *out);
int py_parse_plain(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                   py_args *out);
/* The same for the form in place of an op whose spec has no function. */
int py_parse_in_place(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                      py_args *out);

/* Whether ops choose their dtypes in this thread: autocast.c. */
extern _Thread_local bool py_autocast_on __attribute__((tls_model("initial-exec")));
/* 0: the op goes on with its operands as they are; -1: a->answer is its result. */
int py_autocast(py_args *a);
/* The function op of two operands, one of them an array at least. */
PyObject *py_autocast_operator(const char *op, PyObject *a, PyObject *b);

#define PY_PARAMS PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

/* The names, counts and defaults of f's parameters stand in signatures.pyi. */
#define PY_PARSE(f) PY_PARSE_BY(py_parse, f)
#define PY_PARSE_PLAIN(f) PY_PARSE_BY(py_parse_plain, f)
#define PY_PARSE_BY(parse, f)                                                                                          \
    static const py_spec spec_ = PY_SPEC_##f;                                                                          \
    py_args a;                                                                                                         \
    if (parse(&spec_, self, args, nargs, kwnames, &a) < 0) {                                                           \
        return a.answer;                                                                                               \
    }

#define PY_CAST(function) ((PyCFunction)(void (*)(void))(function))
/* An entry of a table: a function of the module; a method of DeviceArray; one of those that users do not see. */
#define PY_OP(name, doc) PY_HIDDEN(name, doc EXAMPLE_##name)
#define PY_METHOD(name, doc) PY_HIDDEN_METHOD(name, doc EXAMPLE_##name)
#define PY_HIDDEN(name, doc) PY_ENTRY(name, PY_TEXT_##name, doc)
#define PY_HIDDEN_METHOD(name, doc) PY_ENTRY(name, PY_SELF_##name, doc)
#define PY_ENTRY(name, signature, doc)                                                                                 \
    {                                                                                                                  \
#name, PY_CAST(py_##name), METH_FASTCALL | METH_KEYWORDS, #name "(" signature ")\n--\n\n" doc                  \
    }
/* A method without arguments. */
#define PY_NOARGS(name, doc)                                                                                           \
    {                                                                                                                  \
#name, py_##name, METH_NOARGS, #name "($self)\n--\n\n" doc EXAMPLE_##name                                      \
    }
/* Functions without arguments. */
#define PY_GETTER(name, doc) PY_HIDDEN_GETTER(name, doc EXAMPLE_##name)
#define PY_HIDDEN_GETTER(name, doc)                                                                                    \
    {                                                                                                                  \
#name, py_##name, METH_NOARGS, #name "()\n--\n\n" doc                                                          \
    }
#define PY_END                                                                                                         \
    {                                                                                                                  \
        NULL, NULL, 0, NULL                                                                                            \
    }

/* Drops a None, where that is the default of another type. */
static inline void
py_none_is_default(py_args *a, int i)
{
    a->v[i] = a->v[i] == Py_None ? NULL : a->v[i];
}

static inline bool
py_given(PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* Parameter i of a as ...; out stays as it is when it was not given. None stands for that where it can be a default:
 * arrays, dtypes, devices, dims. -1 with an exception set. */
const dt_array *py_arg_array(const py_args *a, int i);
int py_arg_optional_array(const py_args *a, int i, const dt_array **out);
/* An array that shall be written (out=): NULL with no exception when not given. */
int py_arg_out(const py_args *a, int i, PyObject **out);
int py_arg_int(const py_args *a, int i, int64_t *out);
int py_arg_pair(const py_args *a, int i, int64_t out[2]);
int py_arg_float(const py_args *a, int i, double *out);
int py_arg_scalar(const py_args *a, int i, dt_scalar *out);
int py_arg_bool(const py_args *a, int i, bool *out);
int py_arg_dtype(const py_args *a, int i, dt_dtype *out);
int py_arg_device(const py_args *a, int i, dt_device *out);
/* Whether it stands for one int, and is no sequence of them; -1 with an exception, as one of the user's classes is
 * asked. */
int py_is_int(PyObject *object);
/* An int or a sequence of ints; at most DT_MAX_NDIM. None gives n = -1. */
int py_arg_dims(const py_args *a, int i, int *n, int64_t dims[DT_MAX_NDIM]);
/* The same as a new tuple of any length, whose entries nobody has looked at. */
PyObject *py_arg_sequence(const py_args *a, int i);
/* Sizes given one by one, or as one sequence. */
int py_arg_sizes(const py_args *a, int *n, int64_t sizes[DT_MAX_NDIM]);
/* Raises the TypeError that parameter i is not a wanted. */
int py_arg_wrong(const py_args *a, int i, const char *wanted);
/* Whether parameter i was given under NumPy's name for it. */
bool py_arg_renamed(const py_args *a, int i);
/* activation=: None or a name that the core knows. */
int py_arg_activation(const py_args *a, int i, dt_activation *out);
/* requires_grad=, pin_memory=, layout= at i, i + 1, i + 2: checked here, and obeyed by py_created. */
int py_arg_grad(const py_args *a, int i);

/* An attribute by an interned name: CPython's method cache keeps a reference to every other string it sees. */
PyObject *py_attribute(PyObject *object, const char *name);
int py_int(const char *op, const char *name, PyObject *object, int64_t *out);
/* 1: a Python or NumPy number; 0: something else; -1: an exception. */
int py_scalar(PyObject *object, dt_scalar *out);
bool py_is_ndarray(PyObject *object);
/* How a message names what is not as it should be: a text, a number or None as Python writes it, anything else by its
 * type. Nobody's code is run, and no array is read. */
PyObject *py_shown(PyObject *object);
/* op and name are whose parameter object is. */
int py_dtype(py_state *state, const char *op, const char *name, PyObject *object, dt_dtype *out);
int py_device(py_state *state, const char *op, const char *name, PyObject *object, dt_device *out);
/* The dtype that object is, or -1. */
int py_dtype_of(PyObject *object);
/* 1: object names a dtype; 0: not; -1: an exception. */
int py_find_dtype(py_state *state, PyObject *object, dt_dtype *out);

/* ---------------------------------------------------------------- exceptions: errors.c */

/* Raises err and returns NULL. operands are the Python objects whose arrays err may name (also inside tuples). */
PyObject *py_raise(py_state *state, const dt_error *err, PyObject *const *operands, Py_ssize_t noperands);
/* about: what else the explanation looks at: a Node. */
PyObject *py_raise_about(py_state *state, const dt_error *err, PyObject *const *operands, Py_ssize_t noperands,
                         PyObject *about);
PyObject *py_raise_args(const py_args *a, const dt_error *err);
/* GradientError where array wants a gradient and ops are recorded: its numbers are not handed out. -1 then. */
int py_refuse_tracked(PyObject *array, const char *op);
/* GradientError about array. NULL. */
PyObject *py_refuse_grad(PyObject *array, const char *code, const char *op, const char *format, ...) DT_PRINTF(4, 5);
/* The same, and result is released. */
PyObject *py_fail_args(const py_args *a, PyObject *result, const dt_error *err);
/* A refusal that no array explains. */
PyObject *py_refuse(py_state *state, dt_status status, const char *code, const char *op, const char *format, ...)
    DT_PRINTF(5, 6);
/* The same of the call a, which its arrays explain. */
PyObject *py_refuse_args(const py_args *a, dt_status status, const char *code, const char *format, ...) DT_PRINTF(4, 5);
/* exception, of whatever class, gets the attributes and notes of a mismatch: op, and the arrays among objects by their
 * names; wrong (-1: none) is the one that should have been another. Nothing happens where there is no array. */
void py_annotate(py_state *state, PyObject *exception, const char *code, const char *op, const char *const *names,
                 PyObject *const *objects, Py_ssize_t n, Py_ssize_t wrong);
/* The pending exception, gets the same in the call a, unless code of the caller's raised it. -1. */
int py_explain_args(const py_args *a, int wrong);
/* The same where one array was asked for something that it is not. NULL. */
PyObject *py_explain(PyObject *array, const char *code, const char *op);
/* HostAccessError: ndarray and array, the parameter called name, in one operator. */
PyObject *py_refuse_numpy(py_state *state, const char *op, const char *name, PyObject *array, PyObject *ndarray);
/* What an operator answers of what is no array and no number: NotImplemented; other libraries' arrays are refused. */
PyObject *py_refuse_foreign(const char *op, const char *name, PyObject *array, PyObject *other);
/* HostAccessError: the memory of array is not the host's. */
PyObject *py_refuse_host_access(py_state *state, const char *op, PyObject *array);
/* An attribute of devtensor._errors; a new reference. */
PyObject *py_errors_get(py_state *state, const char *name);

/* ---------------------------------------------------------------- the GIL */

#define PY_LARGE 50000

static inline bool
py_is_large(const dt_array *a)
{
    return DT_UNLIKELY(dt_array_numel(a) > PY_LARGE);
}

static inline bool
py_on_device(const dt_array *a)
{
    return a->storage->device.type != DT_CPU;
}

/* Whether this thread has it. */
bool py_holds_gil(void);

/* cuda/launch/launch_log.c: what was sent without the GIL is written down, with this line. */
void py_sent_init(void);
void py_sent_flush(void);
void py_sent_clear(void);

/* cuda/places.c: before the GIL is given up: where, for the race detector of simulated devices. */
void py_places_init(void);
void py_place_keep(void);

/* After the GIL was given up: lines that were to be written down meanwhile. */
void py_lines_flush(void);

/* data.c: who runs without the GIL, so that x.data = y waits. What is marked: the arrays among n objects; or something
 * that nobody knows. */
void py_mark_busy(PyObject *const *objects, Py_ssize_t n, int by);
void py_released(int by);
int py_set_data(PyObject *self, PyObject *value);

/* status = call, without the GIL when release is true. */
#define PY_CALL(release, status, call) PY_CALL_MARKED(release, status, call, py_released(1), py_released(-1))
#define PY_CALL_ON(objects, n, release, status, call)                                                                  \
    PY_CALL_MARKED(release, status, call, py_mark_busy(objects, n, 1), py_mark_busy(objects, n, -1))
#define PY_CALL_MARKED(release, status, call, mark, unmark)                                                            \
    do {                                                                                                               \
        if (DT_UNLIKELY(release)) {                                                                                    \
            mark;                                                                                                      \
            py_place_keep();                                                                                           \
            PyThreadState *thread_ = PyEval_SaveThread();                                                              \
            (status) = (call);                                                                                         \
            PyEval_RestoreThread(thread_);                                                                             \
            unmark;                                                                                                    \
            py_lines_flush();                                                                                          \
        } else {                                                                                                       \
            (status) = (call);                                                                                         \
        }                                                                                                              \
    } while (0)

/* ---------------------------------------------------------------- transfers: transfers.c */

void py_transfers_init(void);
/* What this thread does to array (NULL: none of the user's), for those who watch transfers. */
void py_move_begin(const char *action, PyObject *array);
void py_move_end(void);
/* Warns that non_blocking=True waits at this line. -1 with an exception. */
int py_warn_synchronous(const char *action, const char *reason);

/* PY_CALL in which bytes of array may go to another device. */
#define PY_MOVE(action, array, release, status, call)                                                                  \
    do {                                                                                                               \
        bool watched_ = dt_transfers_watched();                                                                        \
        if (watched_) {                                                                                                \
            py_move_begin(action, array);                                                                              \
        }                                                                                                              \
        PY_CALL(release, status, call);                                                                                \
        if (watched_) {                                                                                                \
            py_move_end();                                                                                             \
        }                                                                                                              \
    } while (0)

/* cuda/streams/stream.c: the queue of a Stream; NULL without an exception for anything else. */
struct cuda_queue *py_stream_queue(py_state *state, PyObject *object);

/* ---------------------------------------------------------------- lists in an index: array/index_lists.c */

/* Whether an entry of an index of self becomes an array: a list, a range, or on the cpu a NumPy array. */
bool py_becomes_array(PyObject *self, PyObject *item);
/* index with arrays in place of these; a new reference. */
PyObject *py_index_without_lists(PyObject *self, const char *op, PyObject *index);

/* ---------------------------------------------------------------- errors of a device: cuda/launch/index_errors.c */

/* op is about to select in x by indices: if a device finds one out of range, the error can say where. */
void py_late_note(const char *op, const dt_array *x);
/* Adds where the call was that a device complains of. */
void py_late_explain(dt_error *err);

/* ---------------------------------------------------------------- pending copies: pending.c */

void py_settle_init(void);
/* Before the bytes of an array of the host are read or handed out: see dt_settle. Who gets the address of the memory
 * may write. -1 with an exception. */
int py_settle(PyObject *array, dt_access access);
/* The same before another library has the address for as long as it likes. */
int py_hand_out(PyObject *array);

/* ---------------------------------------------------------------- used across files */

/* One element to a Python number; op is for the message. */
PyObject *py_item_object(py_state *state, const char *op, PyObject *array);
/* For a report of training programs (grad.c): op has given the user the number of array. */
void py_number_read(const char *op, PyObject *array, const dt_scalar *value);
/* A new array on the host from a number or nested sequences of numbers; dtype < 0: found out. */
PyObject *py_array_from_nested(py_state *state, const char *action, PyObject *object, int dtype);
/* Whether object is one that NumPy should read: its own, or one that says so. */
bool py_is_numpys(PyObject *object);
/* A view of the memory of a NumPy array, which stays alive. */
PyObject *py_wrap_ndarray(py_state *state, const char *action, PyObject *ndarray);
/* A copy on the cpu of any NumPy array of a dtype that there is. */
PyObject *py_copy_ndarray(py_state *state, const char *op, PyObject *ndarray);
/* How arrays are written: print_options.c. */
typedef struct {
    int64_t precision, threshold, edgeitems, linewidth;
    int sci_mode; /* -1: the values decide */
} py_print_options;

py_print_options py_print_options_now(void);
PyObject *py_repr(PyObject *self);
PyObject *py_convert(PyObject *self, const char *action, dt_device device, dt_dtype dtype, bool non_blocking,
                     bool copy);
PyObject *py_binary_object(dt_binary_op op, const char *name, PyObject *a, PyObject *b);
int py_buffer_get(PyObject *self, Py_buffer *view, int flags);
void py_buffer_release(PyObject *self, Py_buffer *view);
/* Gives a Python object back that kept memory of a storage alive; from any thread. */
void py_release_owner(void *owner, void *data);
/* A storage over the bytes of a contiguous memoryview, which stays alive; read-only if that is. */
dt_status py_wrap_memory(PyObject *memory, dt_storage **out, dt_error *err);
PyObject *py_frombuffer(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* The copy that copy.deepcopy makes: arrays that share memory share it afterwards. */
PyObject *py_deep_copy(PyObject *self, PyObject *memo);
/* An array over memory of another library, or a new reference to array itself: dlpack, __cuda_array_interface__. */
PyObject *py_import_dlpack(const py_args *a, PyObject *object, const dt_device *device, int copy);
PyObject *py_import_cuda_interface(const py_args *a, PyObject *object, PyObject *interface);
PyObject *py_get_cuda_interface(PyObject *self, void *closure);

/* Where a's op writes: out= if that was given (parameter i), else a new array. A new reference. */
PyObject *py_result(const py_args *a, int i);
/* Whether out=, parameter i, is an array that may be written; without one 0. */
int py_check_out(const py_args *a, int i);
/* out=, parameter i, of what is made from nothing: gives dtype and device, where it is there, and may be written. */
int py_begin_out(const py_args *a, int i, dt_dtype *dtype, dt_device *device);
/* Whether it has this dtype, which may have been named beside it. */
int py_check_out_dtype(const py_args *a, int i, dt_dtype dtype);
/* result, which an op made: without out=, parameter i, itself; else out, into which it is written. Both are pairs of
 * values and indices, or neither is. */
PyObject *py_into_out(const py_args *a, int i, PyObject *result);
PyObject *py_into_pair(const py_args *a, int i, PyObject *result);
/* The result of a, or its exception. */
static inline PyObject *
py_done(const py_args *a, PyObject *result, dt_status status, const dt_error *err)
{
    if (DT_UNLIKELY(status != DT_OK)) {
        return py_fail_args(a, result, err);
    }
    return py_finish(result, DT_OK, err, a->v, PY_MAX_ARGS);
}
/* Makes result, if there is one, a leaf that wants a gradient. */
PyObject *py_want_grad(PyObject *result);
/* What requires_grad=, parameter i, and pin_memory=, the next, ask of result, which was just made. */
PyObject *py_created_so(const py_args *a, int i, PyObject *result);
static inline PyObject *
py_created(const py_args *a, int i, PyObject *result)
{
    return DT_UNLIKELY(a->v[i] != NULL || a->v[i + 1] != NULL) ? py_created_so(a, i, result) : result;
}
/* How an op ends. call, without the GIL when release is true, writes into out, the array of result, or explains in err
 * why it does not; result is a new reference, or NULL with an exception. */
#define PY_RETURN(a, result, release, call)                                                                            \
    PY_RETURN_BY(result, PY_CALL_ON((a)->v, PY_MAX_ARGS, release, status_, call), py_done(a, result_, status_, &err))
/* The same for a creator whose parameter i is requires_grad, and the next pin_memory, or there is none. */
#define PY_CREATE(a, i, result, release, call)                                                                         \
    PY_RETURN_BY(result, PY_CALL(release, status_, call), py_created(a, i, py_done(a, result_, status_, &err)))
/* The same where x, a Python object, is the only operand. */
#define PY_RETURN_OF(x, result, release, call)                                                                         \
    PY_RETURN_BY(result, PY_CALL_ON(&(x), 1, release, status_, call), py_finish(result_, status_, &err, &(x), 1))
#define PY_RETURN_BY(result, run, done)                                                                                \
    do {                                                                                                               \
        PyObject *result_ = (result);                                                                                  \
        if (result_ == NULL) {                                                                                         \
            return NULL;                                                                                               \
        }                                                                                                              \
        dt_error err;                                                                                                  \
        dt_status status_;                                                                                             \
        dt_array *out = py_array_of(result_);                                                                          \
        run;                                                                                                           \
        return done;                                                                                                   \
    } while (0)

/* A tuple of the columns of the places that are not zero in x, or those as one array. */
PyObject *py_nonzero_of(const py_args *a, PyObject *x, bool as_tuple);
/* Whether the product is worth a release of the GIL. */
bool py_matmul_is_large(const dt_array *a, const dt_array *b);
void py_backends_register(void);

/* Tables of the families: functions of the module, methods of DeviceArray. */
#define PY_FAMILIES(X)                                                                                                 \
    X(unary)                                                                                                           \
    X(binary)                                                                                                          \
    X(cell)                                                                                                            \
    X(compare)                                                                                                         \
    X(reduce)                                                                                                          \
    X(scan)                                                                                                            \
    X(shape)                                                                                                           \
    X(join)                                                                                                            \
    X(select)                                                                                                          \
    X(index)                                                                                                           \
    X(matmul)                                                                                                          \
    X(conv)                                                                                                            \
    X(attributes)                                                                                                      \
    X(move)                                                                                                            \
    X(memory_format)                                                                                                   \
    X(create)                                                                                                          \
    X(random)                                                                                                          \
    X(interchange)                                                                                                     \
    X(dlpack)                                                                                                          \
    X(cuda_interface)                                                                                                  \
    X(pickle)                                                                                                          \
    X(update)                                                                                                          \
    X(checks)                                                                                                          \
    X(need)                                                                                                            \
    X(settings)                                                                                                        \
    X(subclass)                                                                                                        \
    X(as_torch)                                                                                                        \
    X(autocast)                                                                                                        \
    X(print_options)                                                                                                   \
    X(grad_facts)                                                                                                      \
    X(report)                                                                                                          \
    X(saved_hooks)                                                                                                     \
    X(transform)                                                                                                       \
    X(frame)                                                                                                           \
    X(plans)                                                                                                           \
    X(cuda)                                                                                                            \
    X(memory_stats)                                                                                                    \
    X(stream)                                                                                                          \
    X(kernel)                                                                                                          \
    X(sent)                                                                                                            \
    X(transfers)                                                                                                       \
    X(backward)                                                                                                        \
    X(function)                                                                                                        \
    X(grad)                                                                                                            \
    X(grad_hooks)

/* devtensor._C._test: test_hooks.c, cuda/test_hooks.c. */
extern PyMethodDef py_test_hooks[], py_cuda_test_hooks[];

#define PY_FAMILY(name) extern PyMethodDef py_##name##_functions[], py_##name##_methods[];
PY_FAMILIES(PY_FAMILY)
#undef PY_FAMILY

void py_grad_init(py_state *state);

/* Parts that several files fill in. */
extern PyType_Slot py_number_slots[], py_index_slots[], py_sequence_slots[];

#endif
