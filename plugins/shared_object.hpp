// A look at a shared library's file before the dynamic loader maps it.
#pragma once

#include <filesystem>

namespace vramlab {

/// Whether an ELF file (elf(5)) ends before one of the segments that its header lists. The dynamic loader
/// maps these without a look at the file's length, and what touches a page behind the end dies of SIGBUS.
/// Files that the loader itself refuses (other classes, a header that is cut) are not judged.
bool is_cut_off(const std::filesystem::path& shared_object);

}  // namespace vramlab
