// Messages without the figures of PyTorch's allocator: Apple's GPUs, JAX, TensorFlow, drivers and libraries,
// the computer's memory, and what is cut off.
#include <algorithm>

#include <fmt/format.h>

#include "lab/oom/reasoning.hpp"

namespace vramlab {
namespace {

using Help = OomAdvice::Helps;

/// Writes into one diagnosis.
class OtherLayout {
 public:
  OtherLayout(const OomMessage& message, const OomLog& log, OomDiagnosis& diagnosis)
      : message_(message), log_(log), answer_(diagnosis) {}

  void diagnose() {
    answer_.cause = OomCause::undetermined;
    switch (message_.layout) {
      case OomLayout::torch_mps:
        return mps();
      case OomLayout::resource_exhausted:
        return message_.framework == "JAX" ? jax() : tensorflow();
      case OomLayout::host_memory:
        return host();
      case OomLayout::not_a_failure:
        return not_a_failure();
      case OomLayout::absurd_size:
        return absurd_size();
      case OomLayout::other_cuda_error:
        return other_error();
      case OomLayout::driver:
        return driver();
      default:
        return cut_off();
    }
  }

 private:
  void advise(const char* measure, Help helps, const char* why) {
    answer_.advice.push_back({measure, helps, why});
  }
  [[nodiscard]] bool was_set(const char* name) const {
    const auto& set = log_.settings_of_frameworks;
    return std::find(set.begin(), set.end(), name) != set.end();
  }
  void step(std::string line) { answer_.steps.push_back(std::move(line)); }
  [[nodiscard]] std::string asked() const { return message_.tried ? message_.tried->text : "memory"; }

  // "4.90GiB" in words of this program; exact numbers of bytes with both.
  [[nodiscard]] static std::string shown(const PrintedSize& size) {
    const std::string text = size_text(range_of(size));
    const bool exact = size.low == size.high && size.bytes > 1024;
    return exact ? fmt::format("{} ({} bytes)", text, size.bytes) : text;
  }

  // --- PyTorch on Apple's GPUs ---

  void mps() {
    if (!message_.tried || !message_.allocated || !message_.outside || !message_.allowed) return cut_off();
    const SizeRange live = range_of(*message_.allocated);
    const SizeRange outside = range_of(*message_.outside);
    const SizeRange tried = range_of(*message_.tried);
    const SizeRange limit = range_of(*message_.allowed);
    const SizeRange sum = live + outside + tried;
    answer_.others = outside.bytes();
    answer_.key_figures = {
        fmt::format("asked {}; limit {} (high watermark)", size_text(tried), size_text(limit)),
        fmt::format("this process: {} in PyTorch, {} outside its cache", size_text(live),
                    size_text(outside))};
    if (exceeds(sum, limit) == Answer::no) {
      answer_.verdict =
          fmt::format("{} + {} + {} = {} are below the limit of {}: Metal itself refused", size_text(live),
                      size_text(outside), size_text(tried), size_text(sum), size_text(limit));
      answer_.possible_causes = {
          {"limit on one allocation", "Metal limits the size of one buffer",
           "two tensors of half the size each fit"},
          {"the computer's memory", "the GPU shares it", "Activity Monitor, or vm_stat, at the failure"}};
      return;
    }
    answer_.cause = OomCause::fraction_limit;
    const SizeRange missing = sum - limit;
    if (missing.low > 0) answer_.short_by = missing.value;
    if (missing.low <= 0) answer_.short_by_at_most = missing.high;
    answer_.verdict = fmt::format(
        "{} in PyTorch + {} outside its cache + {} asked for = {} exceed the high-watermark limit of {}, by "
        "{}",
        size_text(live), size_text(outside), size_text(tried), size_text(sum), size_text(limit),
        shortfall_text(missing));
    if (outside.value > live.value) {
      answer_.notes.push_back(
          fmt::format("{} of it lie outside PyTorch's cache: graphs and kernels of Metal, other libraries of "
                      "this process.",
                      size_text(outside)));
    }
    step(fmt::format("{}{} less makes room: a smaller batch, fewer shapes (Metal keeps a graph for each)",
                     missing.low > 0 ? "" : "at most ",
                     size_text(missing.low > 0 ? missing : SizeRange::exactly(missing.high))));
    answer_.commands = {"torch.mps.empty_cache()",
                        "export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0  # no limit: the system may fail"};
    answer_.checks_next = {"torch.mps.driver_allocated_memory() beside torch.mps.current_allocated_memory()"};
    advise("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0", Help::perhaps,
           "it lifts the limit; the computer's memory may then run out");
    advise("less live memory", live.value >= missing.value ? Help::yes : Help::no,
           "what PyTorch holds here counts");
    advise("PYTORCH_CUDA_ALLOC_CONF", Help::no, "Apple's GPUs have no such settings");
  }

  // --- JAX and TensorFlow ---

  // Whether the pool of the framework tells why.
  bool pool() {
    if (!message_.tried || !message_.allowed || !message_.in_use) return false;
    const SizeRange tried = range_of(*message_.tried);
    const SizeRange room = range_of(*message_.allowed) - range_of(*message_.in_use);
    answer_.key_figures = {fmt::format("asked {}; in use {} of the pool's {}", shown(*message_.tried),
                                       shown(*message_.in_use), shown(*message_.allowed))};
    if (exceeds(tried, room) == Answer::no) {
      answer_.cause = OomCause::fragmentation;
      answer_.verdict = fmt::format("{} of the pool are not in use, but not in one piece; {} were asked for",
                                    size_text(room), size_text(tried));
      return true;
    }
    const SizeRange missing = tried - room;
    answer_.short_by = missing.value;
    const bool alone = exceeds(tried, range_of(*message_.allowed)) != Answer::no;
    answer_.cause = alone || message_.framework != "JAX" ? OomCause::too_big : OomCause::fraction_limit;
    answer_.verdict = fmt::format("{} in use and the {} asked for exceed the pool's {} by {}",
                                  size_text(range_of(*message_.in_use)), size_text(tried),
                                  size_text(range_of(*message_.allowed)), shortfall_text(missing));
    return true;
  }

  void name_request(const char* framework) {
    answer_.verdict =
        message_.tried
            ? fmt::format("{} could not allocate {} on the device; nothing tells what held the memory",
                          framework, shown(*message_.tried))
            : fmt::format("{} ran out of device memory (\"{}\"); no figures tell why", framework,
                          message_.evidence);
    if (message_.tried) answer_.key_figures = {fmt::format("asked {}", shown(*message_.tried))};
  }

  void jax() {
    if (message_.in_use && message_.total && !message_.allowed) return tpu();
    if (!pool()) {
      name_request("JAX");
      answer_.possible_causes = {
          {"too big at any setting", "the arrays of the compiled step do not fit",
           "jax.profiler.save_device_memory_profile() and the step's memory_analysis()"},
          {"limit set by fraction", "JAX takes 75 % of the card at its start unless told otherwise",
           "it runs with XLA_PYTHON_CLIENT_MEM_FRACTION=.95"},
          {"other processes", "another process, or TensorFlow in this one, took memory before",
           "nvidia-smi lists them"}};
    }
    answer_.commands = {"nvidia-smi"};
    if (!was_set("XLA_PYTHON_CLIENT_MEM_FRACTION=")) {
      answer_.commands.insert(answer_.commands.begin(), "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95");
    }
    step("a smaller batch, jax.checkpoint, donated arguments (donate_argnums)");
    step("TensorFlow beside JAX: tf.config.set_visible_devices([], \"GPU\")");
    if (answer_.cause == OomCause::fragmentation)
      answer_.commands = {"export TF_GPU_ALLOCATOR=cuda_malloc_async",
                          "export XLA_PYTHON_CLIENT_PREALLOCATE=true"};
    advise("a smaller batch, rematerialisation, donated arguments", Help::yes,
           "the arrays of the step need less then");
    advise("XLA_PYTHON_CLIENT_MEM_FRACTION", Help::perhaps,
           "JAX takes 75 % of the card at its start; more may be free");
    advise("XLA_PYTHON_CLIENT_PREALLOCATE=false", Help::perhaps,
           "where other processes use the card; it fragments more");
  }

  void tpu() {
    answer_.cause = OomCause::too_big;
    const SizeRange missing = range_of(*message_.in_use) - range_of(*message_.total);
    answer_.short_by = missing.value;
    answer_.key_figures = {fmt::format("the program needs {} of {}", size_text(range_of(*message_.in_use)),
                                       size_text(range_of(*message_.total)))};
    answer_.verdict = fmt::format("the compiled program needs {} of the device's {}, {} too much",
                                  size_text(range_of(*message_.in_use)), size_text(range_of(*message_.total)),
                                  shortfall_text(missing));
    step("a smaller batch, jax.checkpoint, donated arguments (donate_argnums), or more devices");
  }

  void tensorflow() {
    if (!pool()) {
      name_request(message_.framework.empty() ? "JAX or TensorFlow" : message_.framework.c_str());
      answer_.possible_causes = {
          {"too big at any setting", "what is live and the request exceed the pool",
           "the lines \"Limit\" and \"InUse\" that follow in the log"},
          {"fragmentation", "the pool's free memory is in pieces",
           "\"InUse\" is smaller than \"Limit\" by more than the request"},
          {"other processes", "TensorFlow takes what is free at its start", "nvidia-smi lists them"}};
    }
    answer_.commands = {"nvidia-smi"};
    if (answer_.cause != OomCause::too_big) {
      answer_.commands.insert(answer_.commands.begin(), "export TF_GPU_ALLOCATOR=cuda_malloc_async");
    }
    step("a smaller batch; del models and tf.keras.backend.clear_session() between runs");
    if (!was_set("TF_FORCE_GPU_ALLOW_GROWTH="))
      step("beside other processes: export TF_FORCE_GPU_ALLOW_GROWTH=true");
    advise("a smaller batch", Help::yes, "the tensors of the step need less then");
    advise("TF_GPU_ALLOCATOR=cuda_malloc_async",
           answer_.cause == OomCause::too_big ? Help::no : Help::perhaps, "it closes holes in the pool");
    advise("TF_FORCE_GPU_ALLOW_GROWTH=true", Help::no,
           "it leaves memory to others; this process gets no more");
  }

  void not_a_failure() {
    answer_.cause = OomCause::not_memory;
    answer_.verdict =
        fmt::format("a warning and not a failure: {} could not be had, and {} went on with less",
                    message_.tried ? size_text(range_of(*message_.tried)) : asked(),
                    message_.framework.empty() ? "the framework" : message_.framework);
    step("nothing, unless it is slow: more memory may be faster");
    advise("a smaller batch", Help::no, "nothing failed");
  }

  // --- the computer's memory, other errors ---

  void host() {
    answer_.cause = OomCause::not_memory;
    const std::string size = message_.tried ? fmt::format(", {} were asked for", shown(*message_.tried)) : "";
    const std::string remark = message_.remark.empty() ? "" : "; " + message_.remark;
    answer_.verdict = fmt::format("the computer's memory ran out, not the card's (\"{}\"{}{})",
                                  message_.evidence, size, remark);
    step("fewer loader workers, smaller copies in the computer's memory, less pinned memory");
    if (log_.platform == "Windows") step("a larger page file");
    answer_.checks_next = {"free -h, the container's memory limit, and ulimit -l for pinned memory"};
    advise("fewer or leaner loader workers, no copies in host memory", Help::yes,
           "the request was for host memory");
    advise("allocator settings of PyTorch", Help::no, "they concern the card");
  }

  void absurd_size() {
    answer_.cause = OomCause::not_memory;
    answer_.verdict = "a request of 2^60 bytes or more is a wrong size, not a lack of memory";
    step("find the shape that was computed wrongly");
    advise("finding the shape that was computed wrongly", Help::yes,
           "such a size comes from an overflow, a negative length or uninitialised data");
  }

  void other_error() {
    answer_.cause = OomCause::not_memory;
    answer_.verdict = fmt::format("another error of CUDA (\"{}\")", message_.evidence);
    answer_.commands = {"export CUDA_LAUNCH_BLOCKING=1"};
    step("run again: the call that failed is then the one the traceback shows");
    advise("running with CUDA_LAUNCH_BLOCKING=1", Help::yes, "it shows the call that failed");
    advise("a smaller batch", Help::no, "nothing says that memory was short");
  }

  // PyTorch's module for the backend that the words are of.
  [[nodiscard]] const char* module() const {
    const std::string& words = message_.evidence;
    if (words.starts_with("UR_") || words.starts_with("ZE_") || words.starts_with("PI_")) return "torch.xpu";
    return words.starts_with("kIOGPU") || words.find("buffer size") != std::string::npos ? "torch.mps"
                                                                                         : "torch.cuda";
  }

  void driver() {
    answer_.verdict = fmt::format("device memory ran out (\"{}\"); no figures tell why", message_.evidence);
    if (!message_.remark.empty()) {
      answer_.notes.push_back("\"" + message_.evidence + "\": " + message_.remark + ".");
    }
    if (message_.tried) answer_.key_figures = {fmt::format("asked {}", shown(*message_.tried))};
    if (message_.remark.find("size of one allocation") != std::string::npos) return one_allocation();
    const std::string emptying = fmt::format("{}.empty_cache() before the call", module());
    answer_.possible_causes = {
        {"PyTorch's cache", "a driver or library allocates outside it and cannot use what is idle in it",
         "it runs with " + emptying},
        {"other processes", "they count here, too", "nvidia-smi (rocm-smi, xpu-smi) at the failure"},
        {"too big at any setting", "live tensors and the request exceed the card",
         fmt::format("{}.memory_summary() before the call", module())}};
    if (log_.pins_memory) {
      answer_.possible_causes.insert(answer_.possible_causes.begin(),
                                     {"the computer's memory", "the traceback leads through pinned memory",
                                      "it runs with pin_memory=False"});
    }
    step("a smaller batch, or " + emptying);
    advise("emptying PyTorch's cache before the call", Help::perhaps,
           "a library or the driver allocates outside PyTorch's cache and cannot use what is idle in it");
    advise("memory_stats() and nvidia-smi at that moment", Help::yes,
           "they tell whether the memory is in live tensors, idle, or held by others");
  }

  void one_allocation() {
    answer_.verdict = fmt::format(
        "a limit on one allocation refused, by its words (\"{}\"); no figures tell more", message_.evidence);
    answer_.possible_causes = {
        {"limit on one allocation", "the message says so", "two tensors of half the size each fit"}};
    step("a smaller batch, or the tensor in pieces");
    advise("smaller tensors", Help::yes, "the limit is on one allocation, not on their sum");
    advise("settings of the allocator", Help::no, "the driver refused");
  }

  void cut_off() {
    answer_.verdict = "device memory ran out; the message is cut off before the figures that tell why";
    if (message_.tried && message_.free) {
      const bool card = exceeds(range_of(*message_.tried), range_of(*message_.free)) == Answer::yes;
      answer_.key_figures = {fmt::format("asked {}; free {}", asked(), message_.free->text)};
      if (card)
        answer_.verdict += fmt::format(": {} were asked for and {} free", asked(), message_.free->text);
    }
    step("the whole text of the error: its figures tell the cause");
    advise("the whole text of the error", Help::yes, "its figures tell the cause");
  }

  const OomMessage& message_;
  const OomLog& log_;
  OomDiagnosis& answer_;
};

}  // namespace

void diagnose_other_layout(const OomMessage& message, const OomLog& log, OomDiagnosis& diagnosis) {
  OtherLayout{message, log, diagnosis}.diagnose();
}

}  // namespace vramlab
