/* A policy session for programs in other languages: made from JSON text, told the numbers of each step, it
   says which parameters to run next. The same policies and the same session that the simulator runs; it
   touches no device itself.

   Functions return NULL or a value other than 0 where they fail, and vramlab_last_error() says why. A session
   may be used by one thread at a time. */
#ifndef VRAMLAB_POLICY_H
#define VRAMLAB_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct vramlab_session vramlab_session;

/* A step as it ended. Sizes in bytes, as torch.cuda.memory_stats() gives them. */
typedef struct vramlab_step {
  int64_t iteration; /* counted from 1 */
  int64_t time_ns;   /* since the start of the run */
  uint64_t allocated;
  uint64_t peak_allocated; /* since the peak counter was last reset */
  uint64_t reserved;
  uint64_t peak_reserved;
  uint64_t total; /* what the program may use: its limit if one is set, else the card */
  uint64_t alloc_retries;
  uint64_t allocator_ooms;
  int32_t oom; /* 1: the step failed for lack of memory */
} vramlab_step;

/* What the program must do after the step, in this order; each 0 or 1. */
typedef struct vramlab_decision {
  int32_t empty_cache; /* torch.cuda.empty_cache() */
  int32_t reset_peak;  /* torch.cuda.reset_peak_memory_stats() */
  int32_t retry;       /* run the failed step again, at the new parameters */
  int32_t end_run;     /* the policy cannot go on; vramlab_session_reason() says why */
  int32_t moved;       /* the parameters changed */
} vramlab_decision;

/* json: {"use": "dual-optimizer", "profile": "settled", OPTION: value, ...,
          "parameters": {"batch": {"start": 12, "low": 2, "high": 64}, "lq": {...}}}
   (`vramlab policies NAME` lists the options). NULL if something in it is wrong.

   The options of dual-optimizer may also stand as a training framework has them: in a section
   "training_automations": {"DynamicBatchSizeOptimizer": {OPTION: value, ...}}, or in a YAML file with that
   section, "options_file": PATH. An option given plainly counts before the section's, and that before the
   file's. Its "batch" and "lq" may leave out "low" and "high", which are then min_batch_size, max_batch_size,
   min_lq_size and max_lq_size, and "start", which is then the lowest value. */
vramlab_session* vramlab_session_create(const char* json);
void vramlab_session_destroy(vramlab_session* session);

/* Tells the session how the step at its parameters ended; its answer is in `decision`. */
int vramlab_session_after_step(vramlab_session* session, const vramlab_step* step,
                               vramlab_decision* decision);

/* The value of a parameter for the next step. */
int vramlab_session_get(const vramlab_session* session, const char* parameter, int64_t* value);

/* The bounds of a parameter: it never leaves them. */
int vramlab_session_bounds(const vramlab_session* session, const char* parameter, int64_t* low,
                           int64_t* high);

/* Tells the session that the program itself runs at another value now; moved into its bounds. */
int vramlab_session_set(vramlab_session* session, const char* parameter, int64_t value);

/* The reason of the last decision; empty if nothing was evaluated. Valid until the next call. */
const char* vramlab_session_reason(const vramlab_session* session);

/* What the policy had to say of the last step, a line each; warnings begin with "warning: ". Empty if
   nothing. Valid until the next call. */
const char* vramlab_session_log(const vramlab_session* session);

/* [{"iteration", "from": {NAME: value}, "to": {...}, "reason"}], every change so far. Valid until the next
 * call. */
const char* vramlab_session_adjustments(vramlab_session* session);

/* {NAME: number}, what the policy knows of itself. Valid until the next call. */
const char* vramlab_session_statistics(vramlab_session* session);

/* Why the last call of this thread failed. */
const char* vramlab_last_error(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
