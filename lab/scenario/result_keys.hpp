// What stands for everything that a result depends on, so that a kept one is known again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lab/scenario/file.hpp"

namespace vramlab {

/// FNV-1a, 64 bits; `start` is the hash of what came before.
std::uint64_t text_hash(std::string_view text, std::uint64_t start = 14695981039346656037ULL);

/// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

/// Makes keys. Each file is read once.
class ResultKeys {
 public:
  explicit ResultKeys(std::string_view version) : version_(version) {}

  /// The key of what the program of that version finds out about `scenario`, with `more` that was asked:
  /// it changes with the scenario, with the content of every file that it names and of every plugin, with
  /// the names of the kind's metrics, and with `more`. Throws InputError for a file that cannot be read.
  std::string of(const ScenarioDocument& scenario, const std::vector<std::string>& more = {});

 private:
  std::uint64_t hash_of(const std::filesystem::path& file);
  void add_files(const Json& json, const std::filesystem::path& scenario, std::uint64_t& sum);

  std::string version_;
  std::map<std::string, std::uint64_t> starts_;  ///< by kind
  std::map<std::filesystem::path, std::uint64_t> files_;
};

}  // namespace vramlab
