// Lists of buffers with known lifetimes, as planners take and give them:
//
//   id,lower,upper,size,offset
//   x,0,12,4096,0
//
// lower and upper are times in any unit, the second excluded; size and offset are bytes. offset, which only
// plans have, may be left out as a column.
#pragma once

#include <string>
#include <vector>

#include "plan/buffers.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {

struct BufferList {
  std::vector<Buffer> buffers;
  std::vector<std::string> ids;  ///< by buffer; all different
  std::vector<Bytes> offsets;    ///< by buffer; empty if the file has no such column
};

/// Throws InputError with all problems of the file, each with its line: columns or cells that are missing,
/// numbers that are none, a buffer that does not end after it begins, an id that is there twice, more than
/// 2^62 bytes in all, no buffer at all.
BufferList read_buffer_list(InputFile& file);

/// The text of such a file. `offsets` may be empty.
std::string buffer_list_text(const BufferList& list);

}  // namespace vramlab
