// Reading the files that users hand in, compressed or not.
#pragma once

#include <filesystem>
#include <string>

namespace vramlab {

/// The whole content of a file; gzip and zstd are recognised by their first bytes and unpacked.
/// Throws InputError if the file cannot be opened or is damaged.
std::string read_input_file(const std::filesystem::path& file);

}  // namespace vramlab
