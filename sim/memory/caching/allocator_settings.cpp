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

/// The number that `text` begins with, which is taken off.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<TorchVersion> read(std::string_view text) {
  const auto major = take_number(text);
  if (!major || !text.starts_with('.')) return {};
  text.remove_prefix(1);
  const auto minor = take_number(text);
  if (!minor || !(text.empty() || text.front() == '.' || text.front() == '+')) return {};
  return TorchVersion{*major, *minor};
}

}  // namespace

TorchVersion parse_torch_version(std::string_view text) {
  const auto version = read(text);
  if (!version || *version < kOldestTorch) {
    throw InputError("torch version", '"' + std::string(text) + "\" is not a version from " +
                                          to_text(kOldestTorch) + " on. Write it as 2.6 or 2.11.0.");
  }
  return *version;
}

std::string to_text(TorchVersion version) {
  return std::to_string(version.major) + '.' + std::to_string(version.minor);
}

// R9.3 to R9.5: the grammar, the reset on every parse, and the range of each key.
namespace {

constexpr std::uint64_t kMostMiB = kUnlimited / 1_MiB;  // larger numbers of MB are clamped
constexpr std::uint64_t kMostSegmentMiB = 1'048'576;

[[noreturn]] void refuse(std::string_view key, std::string what) {
  throw InputError("allocator settings: " + std::string(key), std::move(what));
}

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

// The rules of C++'s stoull, which PyTorch uses: a sign, digits, and whatever follows is ignored;
// a negative number wraps around.
std::uint64_t read_integer(std::string_view key, std::string_view token) {
  std::string_view digits = token;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument) refuse(key, in_quotes(token) + " is not a whole number.");
  if (error == std::errc::result_out_of_range) refuse(key, in_quotes(token) + " does not fit 64 bits.");
  return negative ? 0 - value : value;
}

double read_number(std::string_view key, std::string_view token) {
  const std::string_view digits = token.starts_with('+') ? token.substr(1) : token;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{}) refuse(key, in_quotes(token) + " is not a number.");
  return value;
}

bool read_boolean(std::string_view key, std::string_view token) {
  if (token == "True") return true;
  if (token == "False") return false;
  refuse(key, in_quotes(token) + " is not allowed. Write True or False, spelled exactly so.");
}

bool is_power_of_two(std::uint64_t n) { return std::has_single_bit(n); }

constexpr TorchVersion kNewParser{2, 9};            // separators are skipped without being looked at (R9.3)
constexpr TorchVersion kLargeSegmentOption{2, 11};  // section 15

// Walks over the tokens.
class SettingsReader {
 public:
  SettingsReader(std::string_view conf, AllocatorSettings settings)
      : tokens_(tokenize(conf)), settings_(std::move(settings)) {
    settings_.text = conf;
  }

  AllocatorSettings read();

 private:
  using Reader = void (SettingsReader::*)(std::string_view key);
  struct Key {
    std::string_view name;
    Reader read;
    TorchVersion since = kOldestTorch;
  };
  static const std::vector<Key>& keys();

  bool at_end() const { return next_ >= tokens_.size(); }
  const std::string& take(std::string_view key) {
    if (at_end())
      refuse(key, "the settings string ends before the value. Write " + std::string(key) + ":VALUE.");
    return tokens_[next_++];
  }
  std::uint64_t take_integer(std::string_view key) { return read_integer(key, take(key)); }
  void take_separator(std::string_view key, std::string_view separator);

  void reset();
  void read_large_segment_size_first();
  void refuse_pages_without_granularity() const;

  void read_backend(std::string_view key);
  void read_max_split_size(std::string_view key);
  void read_max_non_split_rounding(std::string_view key);
  void read_large_segment_size(std::string_view key);
  void read_roundup(std::string_view key);
  void read_roundup_list(std::string_view key);
  void read_threshold(std::string_view key);
  void read_fraction(std::string_view key);
  void read_register_threads(std::string_view key);
  void read_reserve_segment(std::string_view key);

  template <bool AllocatorSettings::*Member>
  void read_flag(std::string_view key) {
    settings_.*Member = read_boolean(key, take(key));
  }
  template <std::uint64_t AllocatorSettings::*Member>
  void read_count(std::string_view key) {
    settings_.*Member = take_integer(key);
  }

  std::vector<std::string> tokens_;
  std::size_t next_ = 0;
  AllocatorSettings settings_;
};

const std::vector<SettingsReader::Key>& SettingsReader::keys() {
  using R = SettingsReader;
  using S = AllocatorSettings;
  static const std::vector<Key> table{
      {"backend", &R::read_backend},
      {"max_split_size_mb", &R::read_max_split_size},
      {"max_non_split_rounding_mb", &R::read_max_non_split_rounding, {2, 6}},
      {"large_segment_size_mb", &R::read_large_segment_size, {2, 11}},
      {"roundup_power2_divisions", &R::read_roundup},
      {"garbage_collection_threshold", &R::read_threshold},
      {"expandable_segments", &R::read_flag<&S::expandable_segments>},
      {"per_process_memory_fraction", &R::read_fraction, {2, 10}},
      {"release_lock_on_cudamalloc", &R::read_flag<&S::release_lock_on_cudamalloc>},
      {"graph_capture_record_stream_reuse", &R::read_flag<&S::graph_capture_record_stream_reuse>, {2, 10}},
      {"pinned_use_cuda_host_register", &R::read_flag<&S::pinned_use_cuda_host_register>},
      {"pinned_num_register_threads", &R::read_register_threads},
      {"pinned_use_background_threads", &R::read_flag<&S::pinned_use_background_threads>},
      {"pinned_reserve_segment_size_mb", &R::read_reserve_segment},
      {"pinned_max_round_size_mb", &R::read_count<&S::pinned_max_round_size_mb>, {2, 11}},
      {"pinned_max_cached_size_mb", &R::read_count<&S::pinned_max_cached_size_mb>, {2, 11}},
      {"throw_on_cudamalloc_oom", &R::read_flag<&S::throw_on_cudamalloc_oom>, {2, 12}},
  };
  return table;
}

// R9.4: everything else is sticky.
void SettingsReader::reset() {
  settings_.max_split_size = kUnlimited;
  settings_.roundup_power2_divisions.fill(0);
  settings_.garbage_collection_threshold = 0;
}

// R9.5: this key is evaluated before all others, because their ranges depend on it.
void SettingsReader::read_large_segment_size_first() {
  constexpr std::string_view kKey = "large_segment_size_mb";
  if (settings_.torch < kLargeSegmentOption) return;  // then the key is refused in its turn
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i] != kKey) continue;
    next_ = i + 2;
    read_large_segment_size(kKey);
  }
  settings_.max_non_split_rounding = settings_.large_segment_size;
}

AllocatorSettings SettingsReader::read() {
  reset();
  read_large_segment_size_first();
  next_ = 0;
  while (!at_end()) {
    const std::string key = tokens_[next_++];
    const auto known =
        std::find_if(keys().begin(), keys().end(), [&](const Key& k) { return k.name == key; });
    if (known == keys().end()) {
      std::vector<std::string> names;
      for (const Key& k : keys()) names.emplace_back(k.name);
      refuse(key, "unrecognized key." + suggest_name(key.substr(0, key.find('=')), names));
    }
    if (settings_.torch < known->since) {
      refuse(key, "torch " + to_text(settings_.torch) + " does not know this key; it came with " +
                      to_text(known->since) + '.');
    }
    take_separator(key, ":");
    (this->*known->read)(key);
    if (!at_end()) take_separator(key, ",");
  }
  refuse_pages_without_granularity();
  return std::move(settings_);
}

// R5.10: pages are made of physical memory, whose granularity is 2 MiB (R10.1).
void SettingsReader::refuse_pages_without_granularity() const {
  if (!settings_.expandable_segments || settings_.large_segment_size % 2_MiB == 0) return;
  refuse("large_segment_size_mb",
         std::to_string(settings_.large_segment_size / 1_MiB) +
             " is odd; with expandable_segments:True a page must be a multiple of 2 MB.");
}

void SettingsReader::take_separator(std::string_view key, std::string_view separator) {
  if (settings_.torch < kNewParser && !at_end() && tokens_[next_] != separator) {
    refuse(key, in_quotes(tokens_[next_]) + " stands where torch " + to_text(settings_.torch) + " demands " +
                    in_quotes(separator) + '.');
  }
  ++next_;
}

void SettingsReader::read_backend(std::string_view key) {
  const std::string& name = take(key);
  if (name == "native") {
    settings_.backend = AllocatorBackend::native;
  } else if (name == "cudaMallocAsync") {
    settings_.backend = AllocatorBackend::cuda_malloc_async;
  } else {
    refuse(key, in_quotes(name) + " is not allowed. Write native or cudaMallocAsync.");
  }
}

void SettingsReader::read_max_split_size(std::string_view key) {
  const bool new_bound = settings_.torch >= kNewParser;
  const std::uint64_t low = settings_.large_segment_size / 1_MiB + (new_bound ? 0 : 1);
  const std::uint64_t value = take_integer(key);
  if (value < low) {
    refuse(key, std::to_string(value) + " is too small. Allowed: " +
                    (new_bound ? std::to_string(low) +
                                     " (the large segment size in MB) or more; before torch 2.9 more than 20."
                               : "more than 20; 20 itself from torch 2.9 on."));
  }
  settings_.max_split_size = std::min(value, kMostMiB) * 1_MiB;
}

void SettingsReader::read_max_non_split_rounding(std::string_view key) {
  const std::uint64_t low = settings_.large_segment_size / 1_MiB;
  const std::uint64_t value = take_integer(key);
  if (value < low) {
    refuse(key, std::to_string(value) + " is too small. Allowed: " + std::to_string(low) +
                    " (the large segment size in MB) or more.");
  }
  settings_.max_non_split_rounding = std::min(value, kMostMiB) * 1_MiB;
}

void SettingsReader::read_large_segment_size(std::string_view key) {
  const std::uint64_t value = take_integer(key);
  if (value <= 10) refuse(key, std::to_string(value) + " is too small. Allowed: more than 10 (MB).");
  if (value > kMostSegmentMiB) {
    refuse(key, std::to_string(value) + " is more than any card has. Allowed: up to " +
                    std::to_string(kMostSegmentMiB) + " (1 TiB).");
  }
  settings_.large_segment_size = value * 1_MiB;
}

// R1.5, plain form: one number for all sizes.
void SettingsReader::read_roundup(std::string_view key) {
  const std::string& token = take(key);
  if (token == "[") {
    read_roundup_list(key);
    return;
  }
  const std::uint64_t divisions = read_integer(key, token);
  if (!is_power_of_two(divisions)) {
    refuse(key, std::to_string(divisions) + " is not allowed. Write a power of two, 1 or more.");
  }
  settings_.roundup_power2_divisions.fill(divisions);
}

// R1.5, list form [k1:v1,k2:v2,>:v]: the first key also fills the entries below it, later keys set only
// their own entry, ">" fills what follows the latest key.
void SettingsReader::read_roundup_list(std::string_view key) {
  auto& divisions = settings_.roundup_power2_divisions;
  std::size_t last = 0;
  bool first = true;
  while (true) {
    const std::string size = take(key);
    if (size == "]") return;
    take_separator(key, ":");
    const std::uint64_t value = take_integer(key);
    if (value != 0 && !is_power_of_two(value)) {
      refuse(key, std::to_string(value) + " for size " + in_quotes(size) +
                      " is not allowed. Write 0 or a power of two.");
    }
    if (size == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(last) + 1, divisions.end(), value);
    } else {
      const std::uint64_t megabytes = read_integer(key, size);
      if (!is_power_of_two(megabytes)) {
        refuse(key, "size " + in_quotes(size) + " is not allowed. Write a power of two (MB) or >.");
      }
      last =
          std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(megabytes)), divisions.size() - 1);
      if (first) std::fill_n(divisions.begin(), last, value);
      divisions[last] = value;
      first = false;
    }
    if (!at_end() && tokens_[next_] == "]") {
      ++next_;
      return;
    }
    take_separator(key, ",");
  }
}

void SettingsReader::read_threshold(std::string_view key) {
  const std::string& token = take(key);
  const double value = read_number(key, token);
  if (!(value > 0 && value < 1)) {
    refuse(key, in_quotes(token) + " is out of range. Allowed: more than 0 and less than 1.");
  }
  settings_.garbage_collection_threshold = value;
}

void SettingsReader::read_fraction(std::string_view key) {
  const std::string& token = take(key);
  const double value = read_number(key, token);
  if (!(value >= 0 && value <= 1)) refuse(key, in_quotes(token) + " is out of range. Allowed: 0 to 1.");
  settings_.per_process_memory_fraction = value;
}

void SettingsReader::read_register_threads(std::string_view key) {
  const std::uint64_t value = take_integer(key);
  if (!is_power_of_two(value) || value > 128) {
    refuse(key, std::to_string(value) + " is not allowed. Write a power of two, 1 to 128.");
  }
  settings_.pinned_num_register_threads = value;
}

void SettingsReader::read_reserve_segment(std::string_view key) {
  const std::uint64_t value = take_integer(key);
  if (value == 0) refuse(key, "0 is not allowed. Write 1 (MB) or more.");
  settings_.pinned_reserve_segment_size_mb = value;
}

}  // namespace

AllocatorSettings parse_allocator_settings(std::string_view conf, AllocatorSettings current) {
  return SettingsReader(conf, std::move(current)).read();
}

}  // namespace vramlab
