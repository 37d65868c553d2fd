// Allocation scripts: a program's allocations written by hand, one a line.
//
// CSV (plain, gzip or zstd) with the header op,id,bytes,stream,pool,text. Columns that stay empty may be left
// out, of the header or at the end of a line; empty lines and lines that begin with # are passed over.
//
//   op             columns          meaning
//   alloc          id,bytes         + stream (default 0), pool: a request; one that fails is an outcome
//   free           id               ignored if its alloc failed
//   record_stream  id,stream        stream = the other one
//   sync                            all streams have done their work; deferred frees can complete
//                                   + stream: of this stream only
//   empty_cache, reset_peak
//   settings       text             parsed at run time over the settings in force
//   pool_new       pool,text        a MemPool; text = plain (default), use_on_oom or no_split
//   pool_del       pool             the MemPool object dies, or the graph of that name is reset
//   capture_begin  stream           + pool: a name for the graph's pool; a known one is shared
//   capture_end                     + pool or stream; without them, the latest capture ends
//   mark           text             figures are reported for this moment
//
// id and pool are any names or numbers; a freed id may be used again. bytes are 1048576, 24GiB, 512MiB …;
// streams are handles, 0 the default stream. Pool 0 means the default pools unless a pool_new names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recordings/input_file.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// Reads a script: one program. Throws InputError with all problems of the file, each with its line.
std::vector<ClientProgram> script_programs(InputFile& file, const ReadOptions& options);

/// The same from text; `name` stands for the file in errors. `torch`: whose settings it has; empty = the
/// default's.
ClientProgram parse_allocation_script(std::string_view text, const std::string& name,
                                      std::optional<TorchVersion> torch = {});

}  // namespace vramlab
