// What a person reads first: the figures that decide, what was assumed, what to do and what to check.
#include <algorithm>

#include <fmt/format.h>

#include "lab/oom/reasoning.hpp"

namespace vramlab {
namespace {

enum class Age : std::uint8_t { unknown, before_2_9, from_2_9 };  // 2.9 named the variable anew

Age age_of(const OomMessage& message, const OomLog& log) {
  if (message.layout == OomLayout::torch_cached || message.layout == OomLayout::torch_reserved)
    return Age::before_2_9;
  std::string_view version = log.torch_version;
  const auto major = take_number(version);
  if (!major) return log.is_before_2_5 ? Age::before_2_9 : Age::unknown;
  version.remove_prefix(1);  // the dot
  const auto minor = take_number(version).value_or(0);
  return *major < 2 || (*major == 2 && minor < 9) ? Age::before_2_9 : Age::from_2_9;
}

class WrittenAnswer {
 public:
  WrittenAnswer(const OomMessage& message, const OomSizes& sizes, const OomRefusal& refusal,
                const OomLog& log, OomDiagnosis& diagnosis)
      : message_(message), sizes_(sizes), refusal_(refusal), log_(log), answer_(diagnosis) {}

  void write() {
    request();
    own_memory();
    other_processes();
    notes();
    if (answer_.cause != OomCause::inconsistent) what_to_do();
  }

 private:
  template <class... Arguments>
  static void add(std::vector<std::string>& lines, fmt::format_string<Arguments...> form,
                  Arguments&&... arguments) {
    lines.push_back(fmt::format(form, std::forward<Arguments>(arguments)...));
  }
  [[nodiscard]] std::string missing() const { return shortfall_text(shortfall(sizes_, refusal_)); }
  [[nodiscard]] bool was_set(std::string_view setting) const {
    return std::any_of(log_.settings.begin(), log_.settings.end(),
                       [&](const std::string& one) { return one.starts_with(setting); });
  }
  [[nodiscard]] const char* process_list() const {
    if (message_.backend == "HIP") return "rocm-smi --showpids";
    if (message_.backend == "XPU") return "xpu-smi ps";
    if (message_.backend == "NPU") return "npu-smi info";
    return "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,name --format=csv";
  }

  void request() {
    auto& lines = answer_.key_figures;
    const std::string asked = size_text(sizes_.tried);
    const std::string total = size_text(sizes_.total);
    if (sizes_.free_is_bound) {
      add(lines, "asked {} on a card of {}; {} prints no free memory", asked, total, message_.backend);
    } else if (!refusal_.is_explained()) {
      add(lines, "asked {}; free {} of {}", asked, size_text(sizes_.free), total);
    } else {
      add(lines, "asked {}; free {} of {}; short by {}", asked, size_text(sizes_.free), total, missing());
    }
    if (sizes_.allowed) add(lines, "limit on reserved memory {}", size_text(*sizes_.allowed));
  }

  void own_memory() {
    if (sizes_.driver_pool) {
      return add(answer_.key_figures, "this process: {} live; {} neither live nor free",
                 size_text(sizes_.live), size_text(sizes_.own_context));
    }
    std::string line = fmt::format("this process: {} live and {} idle, {} reserved", size_text(sizes_.live),
                                   size_text(sizes_.all_idle()), size_text(sizes_.reserved));
    if (!sizes_.free_is_bound && !answer_.paging) {
      const bool measured = message_.own_process.has_value();
      const bool inferred = sizes_.own_listed_as || sizes_.others_listed;
      line += fmt::format("; {} outside PyTorch{}", size_text(sizes_.own_context),
                          measured   ? ""
                          : inferred ? " (inferred)"
                                     : " (assumed)");
    }
    answer_.key_figures.push_back(std::move(line));
  }

  void other_processes() {
    if (sizes_.driver_pool || sizes_.free_is_bound || answer_.paging) return;
    auto& lines = answer_.key_figures;
    if (sizes_.others.value <= 0) return;
    if (sizes_.others_listed) return add(lines, "other processes: {}", size_text(sizes_.others));
    add(lines, "other processes: about {} (estimated: the message does not list them)",
        size_text(sizes_.others));
  }

  void notes() {
    auto& lines = answer_.notes;
    if (message_.sizes_unknown) {
      add(lines,
          "17179869184.00 GiB stand for -1: the driver of Windows (also below WSL) does not tell what "
          "processes hold.");
    }
    if (sizes_.own_listed_as) {
      add(lines,
          "Process {} is {}: in a container the driver reports process numbers of the host. With it {} of {} "
          "are "
          "accounted for; beside it there is no room for the {} reserved here.",
          sizes_.own_listed_as->pid,
          sizes_.own_is_uncertain ? "taken for this one, the smallest that can hold it" : "this one",
          size_text(sizes_.free + sizes_.reserved + sizes_.own_context + sizes_.others),
          size_text(sizes_.total), size_text(sizes_.reserved));
    }
    if (!sizes_.small_equals.empty()) {
      add(lines,
          "{} processes hold about {} each, as much as a context: ranks of this job that touched this card, "
          "it seems. torch.cuda.set_device(local_rank) before the first CUDA call keeps them off it.",
          sizes_.small_equals.size(), size_text(range_of(sizes_.small_equals.front().size)));
    }
    if (answer_.paging) {
      add(lines,
          "Paging: {} are reserved on a card of {}. The driver of Windows has moved memory to the "
          "computer's, which is "
          "slow.",
          size_text(sizes_.reserved), size_text(sizes_.total));
    }
    const bool assumed = !sizes_.others_listed && !sizes_.own_listed_as && !message_.own_process &&
                         !sizes_.driver_pool && !sizes_.free_is_bound && !answer_.paging;
    if (assumed && sizes_.outside.value > 0) {
      add(lines,
          "Assumed: the message lists no processes; the {} outside PyTorch are {} (contexts were measured on "
          "an H100 alone: up to 771 MiB, 1.65 GiB with NCCL).",
          size_text(sizes_.outside),
          sizes_.others.value > 0 ? "more than a context, so that others are counted in"
                                  : "counted as this process's context");
    }
    if (refusal_.limit_is_deduced) {
      add(lines,
          "Inferred: the message prints no limit. {:g} of the card explains the refusal to within 1 %.",
          *deduced_fraction(sizes_).round);
    }
  }

  void what_to_do() {
    switch (answer_.cause) {
      case OomCause::fragmentation:
      case OomCause::idle_block:
        return for_fragmentation();
      case OomCause::fraction_limit:
        return for_limit();
      case OomCause::other_processes:
        return for_others();
      case OomCause::driver_pool:
        return for_driver_pool();
      case OomCause::outside_pytorch:
        return for_outside();
      case OomCause::undetermined:
        return for_open();
      default:
        return for_too_big();
    }
  }

  void smaller_batch() {
    const SizeRange lacking = shortfall(sizes_, refusal_);
    if (lacking.low > 0) {
      add(answer_.steps, "a smaller batch or checkpointing: with {} less in live tensors it fits",
          size_text(lacking));
    } else {
      add(answer_.steps, "a slightly smaller batch: at most {} are missing",
          size_text(SizeRange::exactly(lacking.high)));
    }
  }

  void for_fragmentation() {
    const bool parentheses = message_.layout != OomLayout::torch_sentences;
    const bool no_expandable = log_.platform == "Windows" || parentheses;
    if (answer_.cause == OomCause::idle_block) {
      add(answer_.steps,
          "no record_stream(), and a wait for the other stream before the request; no private pool for it");
      add(answer_.checks_next,
          "torch.cuda.memory_snapshot() at the failure: state and stream of the idle blocks");
      return smaller_batch();
    }
    const bool without_settings = message_.backend == "XPU" || message_.backend == "MUSA";
    if (without_settings) {
      add(answer_.steps, "a PyTorch whose allocator for {} has expandable segments, if there is one",
          message_.backend);
    } else if (message_.layout == OomLayout::torch_cached) {
      add(answer_.steps, "a newer PyTorch: this version has no settings of the allocator");
    } else if (!no_expandable && !was_set("expandable_segments:True")) {
      answer_.commands.push_back(conf_command("expandable_segments:True", message_, log_));
    } else if (!was_set("expandable_segments:True") && !was_set("max_split_size_mb")) {
      answer_.commands.push_back(conf_command("max_split_size_mb:128", message_, log_));
    }
    if (parentheses && !without_settings)
      add(answer_.steps, "PyTorch 2.1 or newer has expandable_segments:True, which closes holes");
    if (was_set("expandable_segments:True")) {
      add(answer_.steps,
          "expandable_segments:True was on already: what is idle lies in pages with live tensors");
    }
    add(answer_.steps, "the largest batch or sample first, so that its memory serves the smaller ones");
    smaller_batch();
    add(answer_.checks_next,
        "vramlab whatif on a snapshot (torch.cuda.memory._record_memory_history) tells which settings fit");
  }

  void for_limit() {
    if (refusal_.limit_is_deduced) {
      add(answer_.steps, "a larger memory fraction, if the program sets one");
      add(answer_.checks_next,
          "search it for set_per_process_memory_fraction and per_process_memory_fraction");
    } else {
      add(answer_.steps, "a larger memory fraction: {} of the card are free", size_text(sizes_.free));
      answer_.commands.emplace_back("torch.cuda.set_per_process_memory_fraction(1.0)");
    }
    smaller_batch();
  }

  void for_others() {
    if (!sizes_.small_equals.empty()) {
      answer_.commands.emplace_back(
          "torch.cuda.set_device(local_rank)  # before the first CUDA call of each rank");
    }
    answer_.commands.emplace_back(process_list());
    add(answer_.steps, "ending other processes, or another card: {} are enough", missing());
    if (!sizes_.others_listed) {
      add(answer_.checks_next,
          "if it lists no other process, this one holds them outside PyTorch (NCCL, other frameworks)");
    }
  }

  void for_driver_pool() {
    answer_.commands.push_back(conf_command("backend:native", message_, log_));
    add(answer_.steps, "PyTorch's own allocator instead of backend:cudaMallocAsync");
    smaller_batch();
    add(answer_.checks_next, "{}: other processes on the card?", process_list());
  }

  void for_outside() {
    add(answer_.steps,
        "less outside PyTorch: NCCL buffers and channels, other frameworks, CUDA graphs, library workspaces");
    smaller_batch();
    add(answer_.checks_next,
        "torch.cuda.mem_get_info() beside torch.cuda.memory_reserved() after each part of the start");
  }

  void for_open() {
    if (message_.backend == "XPU" && sizes_.tried.high >= 4LL << 30) {
      answer_.commands.emplace_back("export UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1");
    }
    if (refusal_.is_explained()) {
      answer_.commands.emplace_back(process_list());
      if (idle_would_do(sizes_, refusal_)) return for_fragmentation();
      smaller_batch();
    }
  }

  void for_too_big() {
    if (answer_.paging) {
      add(answer_.steps,
          "a smaller batch or model: {} less in live tensors fit the card; what is paged runs slowly",
          size_text(sizes_.live + sizes_.tried - sizes_.total));
    } else {
      smaller_batch();
    }
    const SizeRange beyond = shortfall(sizes_, refusal_) - sizes_.all_idle();
    if (sizes_.all_idle().value > 0) {
      if (beyond.low > 0)
        add(answer_.steps,
            "no setting of the allocator is enough: with all of the {} idle {} are still missing",
            size_text(sizes_.all_idle()), size_text(beyond));
    } else {
      add(answer_.steps, "no setting of the allocator helps: nothing is idle");
    }
    add(answer_.steps,
        "weights or optimizer state in fewer bytes, on more cards, or on the computer (offloading)");
  }

  const OomMessage& message_;
  const OomSizes& sizes_;
  const OomRefusal& refusal_;
  const OomLog& log_;
  OomDiagnosis& answer_;
};

}  // namespace

std::string conf_command(const std::string& setting, const OomMessage& message, const OomLog& log) {
  const std::string name = setting.substr(0, setting.find(':') + 1);
  std::string value;
  for (const std::string& one : log.settings) {
    if (!one.starts_with(name)) value += one + ',';
  }
  value += setting;
  const std::string old_name = message.backend == "HIP"   ? "PYTORCH_HIP_ALLOC_CONF"
                               : message.backend == "NPU" ? "PYTORCH_NPU_ALLOC_CONF"
                                                          : "PYTORCH_CUDA_ALLOC_CONF";
  if (log.platform == "Windows") return fmt::format("set {}={}", old_name, value);
  const Age age = age_of(message, log);
  if (message.backend == "NPU" || age == Age::before_2_9) return fmt::format("export {}={}", old_name, value);
  const std::string line = "export PYTORCH_ALLOC_CONF=" + value;
  return age == Age::from_2_9 ? line : line + "  # before PyTorch 2.9: " + old_name;
}

void write_answer(const OomMessage& message, const OomSizes& sizes, const OomRefusal& refusal,
                  const OomLog& log, OomDiagnosis& diagnosis) {
  WrittenAnswer{message, sizes, refusal, log, diagnosis}.write();
}

}  // namespace vramlab
