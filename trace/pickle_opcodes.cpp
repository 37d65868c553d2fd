#include "trace/pickle_opcodes.hpp"

#include <array>
#include <cstdio>

namespace vramlab {
namespace {

struct Refused {
  std::uint8_t opcode;
  const char* name;
  const char* reason;
};

constexpr const char* kImports = "would import code";
constexpr const char* kCalls = "would call code";
constexpr const char* kRefers = "refers to an object outside the file";
constexpr const char* kOldText = "belongs to the text form of protocols 0 and 1";
constexpr const char* kNoPlainData = "holds data of a kind that is not read";

constexpr std::array kRefused{
    Refused{'c', "GLOBAL", kImports},
    Refused{0x93, "STACK_GLOBAL", kImports},
    Refused{0x82, "EXT1", kImports},
    Refused{0x83, "EXT2", kImports},
    Refused{0x84, "EXT4", kImports},
    Refused{'R', "REDUCE", kCalls},
    Refused{'b', "BUILD", kCalls},
    Refused{'i', "INST", kCalls},
    Refused{'o', "OBJ", kCalls},
    Refused{0x81, "NEWOBJ", kCalls},
    Refused{0x92, "NEWOBJ_EX", kCalls},
    Refused{'P', "PERSID", kRefers},
    Refused{'Q', "BINPERSID", kRefers},
    Refused{0x97, "NEXT_BUFFER", kRefers},
    Refused{0x98, "READONLY_BUFFER", kRefers},
    Refused{'I', "INT", kOldText},
    Refused{'L', "LONG", kOldText},
    Refused{'F', "FLOAT", kOldText},
    Refused{'S', "STRING", kOldText},
    Refused{'V', "UNICODE", kOldText},
    Refused{'p', "PUT", kOldText},
    Refused{'g', "GET", kOldText},
    Refused{'B', "BINBYTES", kNoPlainData},
    Refused{'C', "SHORT_BINBYTES", kNoPlainData},
    Refused{0x8E, "BINBYTES8", kNoPlainData},
    Refused{0x96, "BYTEARRAY8", kNoPlainData},
    Refused{0x8F, "EMPTY_SET", kNoPlainData},
    Refused{0x90, "ADDITEMS", kNoPlainData},
    Refused{0x91, "FROZENSET", kNoPlainData},
};

}  // namespace

std::string pickle_refusal(std::uint8_t opcode) {
  for (const Refused& refused : kRefused) {
    if (refused.opcode != opcode) continue;
    return std::string("opcode ") + refused.name + ' ' + refused.reason +
           "; snapshots never need it. The file was not read.";
  }
  std::array<char, 8> code{};
  std::snprintf(code.data(), code.size(), "0x%02x", opcode);
  return std::string(code.data()) + " is no opcode: the file is damaged or no pickle.";
}

}  // namespace vramlab
