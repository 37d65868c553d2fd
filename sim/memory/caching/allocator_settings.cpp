#include "sim/memory/caching/allocator_settings.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace vramlab {
namespace {

// R9.3 to R9.5: the grammar, the reset on every parse, and the range of each key.

constexpr std::uint64_t kMostMiB = kUnlimited / 1_MiB;  // larger numbers of MB are clamped
constexpr std::uint64_t kMostSegmentMiB = 1'048'576;

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

// R9.3: white space vanishes; `, : [ ]` are tokens of their own; what lies between them is one token.
std::vector<std::string> tokenize(std::string_view conf) {
  std::vector<std::string> tokens;
  std::string word;
  const auto finish_word = [&] {
    if (!word.empty()) tokens.push_back(std::exchange(word, {}));
  };
  for (const char c : conf) {
    if (std::string_view(",:[]").find(c) != std::string_view::npos) {
      finish_word();
      tokens.emplace_back(1, c);
    } else if (std::string_view(" \t\n\v\f\r").find(c) == std::string_view::npos) {
      word += c;
    }
  }
  finish_word();
  return tokens;
}

/// Walks over the tokens.
class SettingsReader {
 public:
  SettingsReader(std::string_view conf, AllocatorSettings settings)
      : tokens_(tokenize(conf)), settings_(std::move(settings)) {
    settings_.text = conf;
  }

  /// What cannot be read is passed over and noted in `unread`, instead of an error.
  void pass_over(std::vector<std::string>& unread) { unread_ = &unread; }

  AllocatorSettings read() {
    reset();
    guarded([&] { read_large_segment_size_first(); });
    next_ = 0;
    while (!at_end()) {
      const std::size_t first = next_;
      if (!guarded([&] { read_item(); })) next_ = end_of_item(first);
    }
    if (!guarded([&] { refuse_pages_without_granularity(); })) {
      settings_.large_segment_size = S{}.large_segment_size;
    }
    return std::move(settings_);
  }

  static std::vector<std::string> without_effect(std::string_view conf) {
    std::vector<std::string> sentences;
    for (const std::string& token : tokenize(conf)) {
      for (const Key& key : keys()) {
        if (token != key.name || key.no_effect.empty()) continue;
        sentences.push_back(token + ' ' + std::string(key.no_effect) + ": it has no effect here.");
      }
    }
    return sentences;
  }

  static TorchVersion first_version(std::string_view conf) {
    TorchVersion first = kOldestTorch;
    for (const std::string& token : tokenize(conf)) {
      for (const Key& key : keys()) {
        if (token == key.name) first = std::max(first, key.since());
      }
    }
    return first;
  }

 private:
  using S = AllocatorSettings;
  struct Key {
    std::string_view name;
    void (SettingsReader::*read)();
    std::optional<TorchRule> rule{};  ///< what says when it came; empty = it was always there
    std::string_view no_effect{};     ///< why it has none here; empty = it has one

    [[nodiscard]] TorchVersion since() const { return rule ? version_rule(*rule).from : kOldestTorch; }
  };

  static constexpr std::string_view kHostOnly = "is about host memory";
  static constexpr std::string_view kLockOnly = "is about locks between threads";

  static const std::vector<Key>& keys() {
    using R = SettingsReader;
    using T = TorchRule;
    static const std::vector<Key> table{
        {"backend", &R::read_backend},
        {"max_split_size_mb", &R::read_max_split_size},
        {"max_non_split_rounding_mb", &R::read_max_non_split_rounding, T::rounding_key},
        {"large_segment_size_mb", &R::read_large_segment_size, T::large_segment_key},
        {"roundup_power2_divisions", &R::read_roundup},
        {"garbage_collection_threshold", &R::read_threshold},
        {"expandable_segments", &R::read_flag<&S::expandable_segments>},
        {"expandable_segments_reserve", &R::read_reserve, T::reserve_keys},
        {"expandable_segments_reserve_by_class", &R::read_reserve_by_class, T::reserve_keys,
         "is for streams that C++ code gave a class, which no recording tells of"},
        {"per_process_memory_fraction", &R::read_fraction, T::fraction_key},
        {"throw_on_cudamalloc_oom", &R::read_flag<&S::throw_on_cudamalloc_oom>, T::throw_on_oom_key},
        {"graph_capture_record_stream_reuse", &R::read_flag<&S::graph_capture_record_stream_reuse>,
         T::capture_reuse_key},
        {"release_lock_on_cudamalloc", &R::read_flag<&S::release_lock_on_cudamalloc>, {}, kLockOnly},
        {"release_lock_on_hipmalloc", &R::read_flag<&S::release_lock_on_cudamalloc>, {}, kLockOnly},
        {"pinned_use_cuda_host_register", &R::read_flag<&S::pinned_use_cuda_host_register>, {}, kHostOnly},
        {"pinned_use_hip_host_register", &R::read_flag<&S::pinned_use_cuda_host_register>, {}, kHostOnly},
        {"pinned_num_register_threads", &R::read_register_threads, {}, kHostOnly},
        {"pinned_use_background_threads", &R::read_flag<&S::pinned_use_background_threads>, {}, kHostOnly},
        {"pinned_reserve_segment_size_mb", &R::read_reserve_segment, {}, kHostOnly},
        {"pinned_max_round_size_mb", &R::read_count<&S::pinned_max_round_size_mb>, T::pinned_limit_keys,
         kHostOnly},
        {"pinned_max_cached_size_mb", &R::read_count<&S::pinned_max_cached_size_mb>, T::pinned_limit_keys,
         kHostOnly},
        {"pinned_free_catch_all", &R::read_flag<&S::pinned_free_catch_all>, T::pinned_catch_key, kHostOnly},
    };
    return table;
  }

  void read_item() {
    key_ = tokens_[next_++];
    const Key& known = find_key();
    if (settings_.torch < known.since()) {
      refuse("torch " + to_text(settings_.torch) + " does not know this key; it came with " +
             to_text(known.since()) + '.');
    }
    take_separator(":");
    (this->*known.read)();
    if (!at_end()) take_separator(",");
  }

  // Whether `read` succeeded; false only where unread items are passed over.
  template <class Read>
  bool guarded(const Read& read) {
    if (unread_ == nullptr) return read(), true;
    const S before = settings_;
    try {
      read();
      return true;
    } catch (const InputError& error) {
      settings_ = before;
      const std::string note = key_ + ": " + error.problems().front().what;
      if (std::find(unread_->begin(), unread_->end(), note) == unread_->end()) unread_->push_back(note);
      return false;
    }
  }

  // Past the comma behind the item that begins there.
  [[nodiscard]] std::size_t end_of_item(std::size_t at) const {
    int depth = 0;
    for (; at < tokens_.size(); ++at) {
      if (tokens_[at] == "[") ++depth;
      if (tokens_[at] == "]") --depth;
      if (tokens_[at] == "," && depth <= 0) return at + 1;
    }
    return at;
  }

  [[noreturn]] void refuse(std::string what) const {
    throw InputError("allocator settings: " + key_, std::move(what));
  }
  void require(bool allowed, const std::string& what) const {
    if (!allowed) refuse(what);
  }

  [[nodiscard]] const Key& find_key() const {
    const auto known =
        std::find_if(keys().begin(), keys().end(), [this](const Key& key) { return key.name == key_; });
    if (known != keys().end()) return *known;
    std::vector<std::string> names;
    for (const Key& key : keys()) names.emplace_back(key.name);
    refuse("unrecognized key." + suggest_name(key_.substr(0, key_.find('=')), names));
  }

  [[nodiscard]] bool at_end() const { return next_ >= tokens_.size(); }
  const std::string& take() {
    require(!at_end(), "the settings string ends before the value. Write " + key_ + ":VALUE.");
    return tokens_[next_++];
  }
  void take_separator(std::string_view separator) {
    if (has_rule(settings_.torch, TorchRule::strict_separators) && !at_end() && tokens_[next_] != separator) {
      refuse(in_quotes(tokens_[next_]) + " stands where torch " + to_text(settings_.torch) + " demands " +
             in_quotes(separator) + '.');
    }
    ++next_;
  }

  // The rules of C++'s stoull, which PyTorch uses: a sign, digits, and whatever follows is ignored;
  // a negative number wraps around.
  [[nodiscard]] std::uint64_t integer(std::string_view token) const {
    std::string_view digits = token;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    std::uint64_t value = 0;
    const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
    require(error != std::errc::invalid_argument, in_quotes(token) + " is not a whole number.");
    require(error != std::errc::result_out_of_range, in_quotes(token) + " does not fit 64 bits.");
    return negative ? 0 - value : value;
  }
  std::uint64_t take_integer() { return integer(take()); }

  [[nodiscard]] double number(std::string_view token) const {
    const std::string_view digits = token.starts_with('+') ? token.substr(1) : token;
    double value = 0;
    const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
    require(error == std::errc{}, in_quotes(token) + " is not a number.");
    return value;
  }

  // R9.4: everything else is sticky.
  void reset() {
    settings_.max_split_size = kUnlimited;
    settings_.roundup_power2_divisions.fill(0);
    settings_.garbage_collection_threshold = 0;
  }

  // R9.5: this key is evaluated before all others, because their ranges depend on it.
  void read_large_segment_size_first() {
    // Without the option the key is refused in its turn.
    if (!has_rule(settings_.torch, TorchRule::rounding_follows_segment)) return;
    key_ = "large_segment_size_mb";
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i] != key_) continue;
      next_ = i + 2;
      read_large_segment_size();
    }
    settings_.max_non_split_rounding = settings_.large_segment_size;
  }

  // R5.10: pages are made of physical memory, whose granularity is 2 MiB (R10.1).
  void refuse_pages_without_granularity() {
    if (!settings_.expandable_segments || settings_.large_segment_size % 2_MiB == 0) return;
    key_ = "large_segment_size_mb";
    refuse(std::to_string(settings_.large_segment_size / 1_MiB) +
           " is odd; with expandable_segments:True a page must be a multiple of 2 MB.");
  }

  void read_backend() {
    const std::string& name = take();
    require(name == "native" || name == "cudaMallocAsync" || name == "hipMallocAsync",
            in_quotes(name) + " is not allowed. Write native or cudaMallocAsync.");
    settings_.backend = name == "native" ? AllocatorBackend::native : AllocatorBackend::cuda_malloc_async;
  }

  // A number of MB, at least `low`, in bytes.
  Bytes take_size(std::uint64_t low, const std::string& allowed) {
    const std::uint64_t value = take_integer();
    require(value >= low, std::to_string(value) + " is too small. Allowed: " + allowed);
    return std::min(value, kMostMiB) * 1_MiB;
  }

  void read_max_split_size() {
    const std::uint64_t low = settings_.large_segment_size / 1_MiB;
    settings_.max_split_size =
        !has_rule(settings_.torch, TorchRule::split_above_20)
            ? take_size(low, std::to_string(low) +
                                 " (the large segment size in MB) or more; before torch 2.9 more than 20.")
            : take_size(low + 1, "more than 20; 20 itself from torch 2.9 on.");
  }

  void read_max_non_split_rounding() {
    const std::uint64_t low = settings_.large_segment_size / 1_MiB;
    settings_.max_non_split_rounding =
        take_size(low, std::to_string(low) + " (the large segment size in MB) or more.");
  }

  void read_large_segment_size() {
    const std::uint64_t value = take_integer();
    require(value > 10, std::to_string(value) + " is too small. Allowed: more than 10 (MB).");
    require(value <= kMostSegmentMiB, std::to_string(value) + " is more than any card has. Allowed: up to " +
                                          std::to_string(kMostSegmentMiB) + " (1 TiB).");
    settings_.large_segment_size = value * 1_MiB;
  }

  // R1.5, plain form: one number for all sizes.
  void read_roundup() {
    const std::string& token = take();
    if (token == "[") return read_roundup_list();
    const std::uint64_t divisions = integer(token);
    require(std::has_single_bit(divisions),
            std::to_string(divisions) + " is not allowed. Write a power of two, 1 or more.");
    settings_.roundup_power2_divisions.fill(divisions);
  }

  // R1.5, list form [k1:v1,k2:v2,>:v]: the first key also fills the entries below it, later keys set only
  // their own entry, ">" fills what follows the latest key.
  void read_roundup_list() {
    auto& divisions = settings_.roundup_power2_divisions;
    std::size_t last = 0;
    bool first = true;
    while (true) {
      const std::string size = take();
      if (size == "]") return;
      take_separator(":");
      const std::uint64_t value = take_integer();
      require(value == 0 || std::has_single_bit(value), std::to_string(value) + " for size " +
                                                            in_quotes(size) +
                                                            " is not allowed. Write 0 or a power of two.");
      if (size == ">") {
        std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(last) + 1, divisions.end(), value);
      } else {
        const std::uint64_t megabytes = integer(size);
        require(std::has_single_bit(megabytes),
                "size " + in_quotes(size) + " is not allowed. Write a power of two (MB) or >.");
        last = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(megabytes)),
                                     divisions.size() - 1);
        if (first) std::fill_n(divisions.begin(), last, value);
        divisions[last] = value;
        first = false;
      }
      if (!at_end() && tokens_[next_] == "]") {
        ++next_;
        return;
      }
      take_separator(",");
    }
  }

  void read_threshold() {
    const std::string& token = take();
    const double value = number(token);
    require(value > 0 && value < 1,
            in_quotes(token) + " is out of range. Allowed: more than 0 and less than 1.");
    settings_.garbage_collection_threshold = value;
  }

  void read_fraction() {
    const std::string& token = take();
    const double value = number(token);
    require(value >= 0 && value <= 1, in_quotes(token) + " is out of range. Allowed: 0 to 1.");
    settings_.per_process_memory_fraction = value;
  }

  // "0.5" is a share of the card, "40G" are GiB. What is neither is passed over by PyTorch, with a warning,
  // and what was set before holds.
  std::optional<SegmentReserve> take_reserve() {
    std::string_view digits = take();
    const bool is_share = !digits.ends_with('G') && !digits.ends_with('g');
    if (!is_share) digits.remove_suffix(1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_read = error == std::errc{} && end == digits.data() + digits.size();
    if (!is_read || !std::isfinite(value) || !(value > 0)) return {};
    return SegmentReserve{is_share, value};
  }

  void read_reserve() {
    if (const auto reserve = take_reserve()) settings_.expandable_segments_reserve = reserve;
  }

  // [serving:0.25,sparse:8G]: replaces the whole list; a bad entry is passed over.
  void read_reserve_by_class() {
    take_separator("[");
    settings_.expandable_segments_reserve_by_class.clear();
    for (;;) {
      const std::string name = take();
      if (name == "]") return;
      if (name == ",") continue;
      take_separator(":");
      if (const auto reserve = take_reserve()) {
        settings_.expandable_segments_reserve_by_class.emplace_back(name, *reserve);
      }
    }
  }

  void read_register_threads() {
    const std::uint64_t value = take_integer();
    require(std::has_single_bit(value) && value <= 128,
            std::to_string(value) + " is not allowed. Write a power of two, 1 to 128.");
    settings_.pinned_num_register_threads = value;
  }

  void read_reserve_segment() {
    const std::uint64_t value = take_integer();
    require(value != 0, "0 is not allowed. Write 1 (MB) or more.");
    settings_.pinned_reserve_segment_size_mb = value;
  }

  template <bool S::*Member>
  void read_flag() {
    const std::string& token = take();
    require(token == "True" || token == "False",
            in_quotes(token) + " is not allowed. Write True or False, spelled exactly so.");
    settings_.*Member = token == "True";
  }

  template <std::uint64_t S::*Member>
  void read_count() {
    settings_.*Member = take_integer();
  }

  std::vector<std::string> tokens_;
  std::size_t next_ = 0;
  std::string key_;  // what is being read
  AllocatorSettings settings_;
  std::vector<std::string>* unread_ = nullptr;
};

}  // namespace

Bytes SegmentReserve::of(Bytes total) const {
  const Bytes whole = total + total / 8;
  const double bytes = value * static_cast<double>(is_share ? total : 1_GiB);
  return bytes >= static_cast<double>(whole) ? whole : static_cast<Bytes>(bytes);
}

AllocatorSettings parse_allocator_settings(std::string_view conf, AllocatorSettings current) {
  return SettingsReader(conf, std::move(current)).read();
}

AllocatorSettings parse_recorded_settings(std::string_view conf, TorchVersion torch,
                                          std::vector<std::string>& unread) {
  AllocatorSettings settings;
  settings.torch = torch;
  SettingsReader reader(conf, std::move(settings));
  reader.pass_over(unread);
  return reader.read();
}

std::vector<std::string> keys_without_effect(std::string_view conf) {
  return SettingsReader::without_effect(conf);
}

TorchVersion first_version_with(std::string_view conf) { return SettingsReader::first_version(conf); }

}  // namespace vramlab
