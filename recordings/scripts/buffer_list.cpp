#include "recordings/scripts/buffer_list.hpp"

#include <charconv>
#include <unordered_map>

#include "core/csv.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

template <class Number>
Number whole_number(const CsvTable& table, std::size_t row, std::string_view column, const char* allowed) {
  const std::string_view cell = table.text(row, column);
  Number number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc{} || end != cell.data() + cell.size() || cell.empty()) {
    table.wrong(row, column, std::string("is not ") + allowed + '.');
  }
  return number;
}

Bytes bytes_of(const CsvTable& table, std::size_t row, std::string_view column, Bytes most) {
  constexpr const char* kAllowed = "a whole number of bytes from 0 to 2^62";
  const auto bytes = whole_number<Bytes>(table, row, column, kAllowed);
  if (bytes > most) table.wrong(row, column, std::string("is not ") + kAllowed + '.');
  return bytes;
}

std::int64_t time_of(const CsvTable& table, std::size_t row, std::string_view column) {
  return whole_number<std::int64_t>(table, row, column, "a whole number from -2^63 to 2^63 - 1");
}

Buffer buffer_of(const CsvTable& table, std::size_t row) {
  const Buffer buffer{time_of(table, row, "lower"), time_of(table, row, "upper"),
                      bytes_of(table, row, "size", kMostBufferBytes)};
  if (buffer.lower >= buffer.upper) {
    table.wrong(row, "upper", "is not above lower, which is " + std::to_string(buffer.lower) + '.');
  }
  return buffer;
}

}  // namespace

BufferList read_buffer_list(InputFile& file) {
  const std::string name = file.name();
  const CsvTable table(file);
  table.require_columns({"id", "lower", "upper", "size", "offset"});
  for (const char* column : {"id", "lower", "upper", "size"}) {
    if (!table.has(column)) {
      throw InputError(name + ":1", "has no column \"" + std::string(column) +
                                        "\". A list of buffers begins with the header id,lower,upper,size");
    }
  }
  if (table.rows() == 0) throw InputError(name, "holds no buffers.");
  BufferList list;
  std::unordered_map<std::string, std::size_t> rows;  // by id
  Bytes total = 0;
  LineProblems problems;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    problems.guarded([&] {
      const Buffer buffer = buffer_of(table, row);
      if (table.text(row, "id").empty()) table.wrong(row, "id", "is empty.");
      if (!rows.emplace(table.text(row, "id"), row).second) table.wrong(row, "id", "is there twice.");
      if (buffer.size > kMostBufferBytes - total) {
        table.wrong(row, "size", "makes more than 2^62 bytes of all buffers.");
      }
      total += buffer.size;
      list.buffers.push_back(buffer);
      list.ids.emplace_back(table.text(row, "id"));
      if (table.has("offset")) list.offsets.push_back(bytes_of(table, row, "offset", kMostBufferBytes));
    });
  }
  problems.throw_if_any(name);
  return list;
}

std::string buffer_list_text(const BufferList& list) {
  std::string text = list.offsets.empty() ? "id,lower,upper,size\n" : "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < list.buffers.size(); ++i) {
    const Buffer& buffer = list.buffers[i];
    text += csv_cell(list.ids[i]) + ',' + std::to_string(buffer.lower) + ',' + std::to_string(buffer.upper) +
            ',' + std::to_string(buffer.size);
    if (!list.offsets.empty()) text += ',' + std::to_string(list.offsets[i]);
    text += '\n';
  }
  return text;
}

}  // namespace vramlab
