// Files are written beside their place and renamed at the end, so that a failure loses nothing.
#pragma once

#include <filesystem>
#include <string_view>

namespace vramlab {

/// Puts `content` into `path`, replacing what was there only after every byte is on disk. A link keeps
/// pointing where it did; a device or a pipe is written to.
/// Throws InputError naming the path and the system's reason (missing folder, no space, no permission);
/// then the old file is untouched and no temporary file stays.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace vramlab
