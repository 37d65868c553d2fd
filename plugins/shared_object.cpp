#include "plugins/shared_object.hpp"

#include <cstring>
#include <fstream>

#include <elf.h>

namespace vramlab {
namespace {

template <class Header>
bool read_at(std::ifstream& stream, std::uint64_t offset, Header& header) {
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(reinterpret_cast<char*>(&header), sizeof header);
  return stream.good();
}

bool ends_before(std::uint64_t size, std::uint64_t offset, std::uint64_t length) {
  return offset > size || length > size - offset;
}

}  // namespace

bool is_cut_off(const std::filesystem::path& shared_object) {
  std::ifstream stream{shared_object, std::ios::binary};
  Elf64_Ehdr file{};
  if (!read_at(stream, 0, file)) return false;
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64) return false;
  const std::uint64_t size = std::filesystem::file_size(shared_object);
  for (std::uint64_t i = 0; i < file.e_phnum; ++i) {
    const std::uint64_t offset = file.e_phoff + i * file.e_phentsize;
    Elf64_Phdr segment{};
    if (ends_before(size, offset, sizeof segment) || !read_at(stream, offset, segment)) return true;
    if (segment.p_type == PT_LOAD && ends_before(size, segment.p_offset, segment.p_filesz)) return true;
  }
  return false;
}

}  // namespace vramlab
