// The opcodes are those of Python's pickle module; the byte strings were checked against pickle.loads().
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/pickle/pickle.hpp"
#include "tests/recordings/pickle/pickle_text.hpp"

namespace vramlab {
namespace {

using namespace pickle_text;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = PickleValue::Kind;

std::string show(const PickleDocument& document, PickleValue value) {
  std::string out;
  switch (value.kind()) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return value.is_truth() ? "True" : "False";
    case Kind::integer:
      return std::to_string(*document.integer(value));
    case Kind::huge:
      return "huge";
    case Kind::real:
      return std::to_string(*document.real(value));
    case Kind::text:
      return '"' + std::string(*document.text(value)) + '"';
    case Kind::list:
      out = "[";
      break;
    case Kind::tuple:
      out = "(";
      break;
    case Kind::dict:
      out = "{";
      break;
  }
  for (const PickleValue item : document.items(value)) out += show(document, item) + ' ';
  return out + (out[0] == '[' ? ']' : out[0] == '(' ? ')' : '}');
}

std::string read(const std::string& data) {
  const PickleDocument document = read_pickle(data, "x.pickle");
  return show(document, document.root());
}

std::string refusal(const std::string& data) {
  try {
    read_pickle(data, "x.pickle");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

struct Case {
  const char* name;
  std::string body;
  std::string value;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case> kCases{
    {"None", raw("N"), "None"},
    {"NewTrue", raw("\x88"), "True"},
    {"NewFalse", raw("\x89"), "False"},
    {"BinInt", raw("J\xfe\xff\xff\xff"), "-2"},
    {"BinInt1", raw("K\xff"), "255"},
    {"BinInt2", raw("M\x00\xff"), "65280"},
    {"Long1Empty", raw("\x8a\x00"), "0"},
    {"Long1Address", raw("\x8a\x06\x00\x00\xa0\x15\x96\x7f"), "140282584629248"},
    {"Long1Negative", raw("\x8a\x02\x00\x80"), "-32768"},
    {"Long1Widest", raw("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), "9223372036854775807"},
    {"Long1Lowest", raw("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"), "-9223372036854775808"},
    {"Long1OfNineBytes", raw("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"), "huge"},  // 2^64
    {"Long4", raw("\x8b\x02\x00\x00\x00\x01\x01"), "257"},
    {"BinFloat", raw("G\x3f\xe8\x00\x00\x00\x00\x00\x00"), "0.750000"},
    {"ShortBinUnicode", raw("\x8c\x02hi"), "\"hi\""},
    {"BinUnicode", raw("X\x02\x00\x00\x00hi"), "\"hi\""},
    {"BinUnicode8", raw("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"), "\"hi\""},
    {"ShortBinString", raw("U\x02hi"), "\"hi\""},
    {"BinString", raw("T\x02\x00\x00\x00hi"), "\"hi\""},
    {"EmptyContainers", raw("])}\x87"), "([] () {} )"},
    {"Tuple1", raw("K\x01\x85"), "(1 )"},
    {"Tuple2", raw("K\x01K\x02\x86"), "(1 2 )"},
    {"Tuple", raw("(K\x01K\x02K\x03K\x04t"), "(1 2 3 4 )"},
    {"List", raw("(K\x01K\x02l"), "[1 2 ]"},
    {"Dict",
     raw("(K\x01K\x02"
         "d"),
     "{1 2 }"},
    {"Append",
     raw("]K\x01"
         "aK\x02"
         "a"),
     "[1 2 ]"},
    {"AppendsInBatches",
     raw("](K\x01K\x02"
         "e(K\x03"
         "e(eK\x04"
         "a"),
     "[1 2 3 4 ]"},
    {"SetItem",
     raw("}\x8c\x01"
         "aK\x01s"),
     "{\"a\" 1 }"},
    {"SetItemsInBatches",
     raw("}(\x8c\x01"
         "aK\x01u(\x8c\x01"
         "bNu"),
     "{\"a\" 1 \"b\" None }"},
    {"Memoize",
     raw("(\x8c\x01"
         "a\x94\x8c\x01"
         "b\x94h\x01h\x00t"),
     "(\"a\" \"b\" \"b\" \"a\" )"},
    {"BinPutAndGet",
     raw("(\x8c\x01"
         "aq\x00h\x00t"),
     "(\"a\" \"a\" )"},
    {"LongBinPutAndGet",
     raw("(\x8c\x01"
         "ar\x00\x01\x00\x00j\x00\x01\x00\x00t"),
     "(\"a\" \"a\" )"},
    {"Pop",
     raw("K\x01K\x02"
         "0"),
     "1"},
    {"PopOfAMark", raw("K\x01(0"), "1"},
    {"PopMark",
     raw("K\x01(K\x02K\x03"
         "1"),
     "1"},
    {"Dup",
     raw("K\x01"
         "2\x86"),
     "(1 1 )"},
    {"Frame", raw("\x95\x02\x00\x00\x00\x00\x00\x00\x00K\x07"), "7"},
};

class PickleOpcodeTest : public testing::TestWithParam<Case> {};

TEST_P(PickleOpcodeTest, IsRead) { EXPECT_EQ(read(whole(GetParam().body)), GetParam().value); }

INSTANTIATE_TEST_SUITE_P(Pickle, PickleOpcodeTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Pickle, ProtocolsTwoToFiveAreRead) {
  for (int protocol = 2; protocol <= 5; ++protocol) EXPECT_EQ(read(whole("K\x01", protocol)), "1");
  EXPECT_EQ(refusal(whole("K\x01", 1)), "x.pickle: byte 0: is a pickle of protocol 1; 2 to 5 are read.");
  EXPECT_EQ(refusal(whole("K\x01", 6)), "x.pickle: byte 0: is a pickle of protocol 6; 2 to 5 are read.");
  EXPECT_EQ(refusal("(lp0\n."), "x.pickle: byte 0: is not a pickle of protocol 2 to 5.");
  EXPECT_EQ(refusal(""), "x.pickle: is empty; a pickle of protocol 2 to 5 is expected.");
}

TEST(Pickle, SharedContainersAreOne) {
  const std::string data = whole(raw("(]\x94h\x00t"));
  const PickleDocument document = read_pickle(data, "x");
  const auto items = document.items(document.root());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(document.container_count(), 2u);
}

TEST(Pickle, EqualTextsAreOneHoweverOftenTheyAreWritten) {
  const std::string data = whole("(" + text("N/A") + text("N/A") + text("") + "t");
  const PickleDocument document = read_pickle(data, "x");
  const auto items = document.items(document.root());
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(document.text_count(), 2u);
}

TEST(Pickle, AListOfManyBatchesKeepsItsOrder) {
  std::string body = "]";
  for (int batch = 0; batch < 300; ++batch) {
    body += '(';
    for (int i = 0; i < 100; ++i) body += integer(batch * 100 + i);
    body += 'e';
  }
  const std::string data = whole(body);
  const PickleDocument document = read_pickle(data, "x");
  const auto items = document.items(document.root());
  ASSERT_EQ(items.size(), 30000u);
  for (std::size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(document.integer(items[i]), static_cast<std::int64_t>(i));
  }
}

struct Refusal {
  const char* opcode;
  std::string body;
};

void PrintTo(const Refusal& r, std::ostream* out) { *out << r.opcode; }

const std::vector<Refusal> kRefusals{
    {"GLOBAL would import code", raw("cos\nsystem\n")},
    {"STACK_GLOBAL would import code", raw("\x93")},
    {"EXT1 would import code", raw("\x82\x01")},
    {"EXT2 would import code", raw("\x83\x01\x00")},
    {"EXT4 would import code", raw("\x84\x01\x00\x00\x00")},
    {"REDUCE would call code", raw("R")},
    {"BUILD would call code", raw("b")},
    {"INST would call code", raw("ios\nsystem\n")},
    {"OBJ would call code", raw("o")},
    {"NEWOBJ would call code", raw("\x81")},
    {"NEWOBJ_EX would call code", raw("\x92")},
    {"PERSID refers to an object outside the file", raw("Pid\n")},
    {"BINPERSID refers to an object outside the file", raw("Q")},
    {"NEXT_BUFFER refers to an object outside the file", raw("\x97")},
    {"READONLY_BUFFER refers to an object outside the file", raw("\x98")},
    {"INT belongs to the text form of protocols 0 and 1", raw("I1\n")},
    {"LONG belongs to the text form of protocols 0 and 1", raw("L1L\n")},
    {"FLOAT belongs to the text form of protocols 0 and 1", raw("F1\n")},
    {"STRING belongs to the text form of protocols 0 and 1", raw("S'a'\n")},
    {"UNICODE belongs to the text form of protocols 0 and 1", raw("Va\n")},
    {"PUT belongs to the text form of protocols 0 and 1", raw("p0\n")},
    {"GET belongs to the text form of protocols 0 and 1", raw("g0\n")},
    {"BINBYTES holds data of a kind that is not read", raw("B\x00\x00\x00\x00")},
    {"SHORT_BINBYTES holds data of a kind that is not read", raw("C\x00")},
    {"BINBYTES8 holds data of a kind that is not read", raw("\x8e")},
    {"BYTEARRAY8 holds data of a kind that is not read", raw("\x96")},
    {"EMPTY_SET holds data of a kind that is not read", raw("\x8f")},
    {"ADDITEMS holds data of a kind that is not read", raw("\x90")},
    {"FROZENSET holds data of a kind that is not read", raw("\x91")},
};

class PickleRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(PickleRefusalTest, NamesTheOpcodeAndItsByte) {
  EXPECT_EQ(refusal(whole("N" + GetParam().body)), std::string("x.pickle: byte 3: opcode ") +
                                                       GetParam().opcode +
                                                       "; snapshots never need it. The file was not read.");
}

INSTANTIATE_TEST_SUITE_P(Pickle, PickleRefusalTest, testing::ValuesIn(kRefusals), [](const auto& test) {
  return std::string(test.param.opcode, std::string_view(test.param.opcode).find(' '));
});

TEST(PickleHostile, BytesThatAreNoOpcodeAreNamed) {
  EXPECT_EQ(refusal(whole(raw("N\xff"))),
            "x.pickle: byte 3: 0xff is not an opcode: the file is damaged or not a pickle.");
  EXPECT_EQ(refusal(whole(raw("N\x80\x04"))), "x.pickle: byte 3: a second pickle begins inside the first.");
}

TEST(PickleHostile, AnnouncedLengthsBeyondTheFileAreRefused) {
  const std::string ends = "the file ends too early: ";
  EXPECT_THAT(refusal(whole(raw("\x8c\xff") + "x")),
              HasSubstr(ends + "255 bytes are announced, 2 are left."));
  EXPECT_THAT(refusal(whole("X" + number(0xFFFFFFFF, 4))), HasSubstr(ends + "4294967295 bytes"));
  EXPECT_THAT(refusal(whole(raw("\x8d") + number(~std::uint64_t{0}, 8))),
              HasSubstr(ends + "18446744073709551615 bytes"));
  EXPECT_THAT(refusal(whole(raw("\x8b") + number(0xFFFFFFFF, 4))), HasSubstr(ends));
  EXPECT_THAT(refusal(whole(raw("\x8a\xff"))), HasSubstr(ends));
  EXPECT_THAT(refusal(whole(raw("\x95") + number(~std::uint64_t{0}, 8) + "N")), HasSubstr(ends));
}

TEST(PickleHostile, NestingIsBounded) {
  const auto nested = [](std::size_t levels) {
    return whole(std::string(levels, ']') + std::string(levels - 1, 'a'));
  };
  EXPECT_THAT(read(nested(kPickleDepth)), StartsWith("[[[["));
  EXPECT_EQ(refusal(nested(kPickleDepth + 1)), "x.pickle: has containers more than 100 levels deep.");
  EXPECT_EQ(refusal(nested(1'000'000)), "x.pickle: has containers more than 100 levels deep.");
  EXPECT_THAT(refusal(whole(std::string(1'000'000, '('))), HasSubstr("byte 1002: is nested too deeply."));
}

// Each list holds the one before it, which is already known when the next one is met.
TEST(PickleHostile, NestingThroughSharedContainersIsBounded) {
  const auto chain = [](std::size_t levels) {
    std::string body = raw("(]\x94");
    for (std::size_t level = 1; level < levels; ++level) {
      body += raw("]\x94h") + static_cast<char>(level - 1) + 'a';
    }
    return whole(body + 'l');
  };
  EXPECT_EQ(refusal(chain(kPickleDepth - 1)), "accepted");
  EXPECT_EQ(refusal(chain(kPickleDepth)), "x.pickle: has containers more than 100 levels deep.");
}

TEST(PickleHostile, CyclesAreRefused) {
  EXPECT_EQ(refusal(whole(raw("]\x94h\x00"
                              "a"))),
            "x.pickle: is cyclic: a container contains itself.");
  EXPECT_EQ(refusal(whole(raw("]\x94]\x94h\x00"
                              "aa"))),
            "x.pickle: is cyclic: a container contains itself.");
  EXPECT_EQ(refusal(whole(raw("]\x94}\x94\x8c\x01"
                              "kh\x00sa"))),
            "x.pickle: is cyclic: a container contains itself.");
}

// 2^40 lists by value, 40 by reference.
TEST(PickleHostile, SharingManyTimesOverCostsNothing) {
  std::string body = raw("]\x94");
  for (int level = 1; level <= 40; ++level) {
    const char previous = static_cast<char>(level - 1);
    body += raw("]\x94(h") + previous + "h" + previous + "e";
  }
  body = "(" + body + "l";
  EXPECT_EQ(refusal(whole(body)), "accepted");
}

TEST(PickleHostile, TheMemoIsBounded) {
  EXPECT_EQ(refusal(whole(raw("h\x05"))), "x.pickle: byte 2: memo number 5 is used and was never set.");
  EXPECT_THAT(refusal(whole("Nr" + number(0xFFFFFFFF, 4))),
              HasSubstr("byte 3: memo number 4294967295 is out of range."));
  std::string sparse = "N";  // each number 65,536 beyond the last
  for (std::uint64_t i = 1; i <= 1000; ++i) sparse += "r" + number(i << 16, 4);
  EXPECT_EQ(refusal(whole(sparse)), "x.pickle: byte 8: memo number 131072 is out of range.");
  EXPECT_THAT(refusal(whole("j" + number(0xFFFFFFFF, 4))), HasSubstr("is used and was never set."));
  EXPECT_THAT(refusal(whole(raw("Nq\x05"
                                "0h\x04"))),
              HasSubstr("memo number 4 is used and was never set."));
  EXPECT_THAT(refusal(whole(raw("\x94"))), HasSubstr("a value is used that is not there."));
}

TEST(PickleHostile, TheStackIsChecked) {
  EXPECT_THAT(refusal(whole("")), HasSubstr("the pickle ends with 0 values instead of one."));
  EXPECT_THAT(refusal(whole("NN")), HasSubstr("the pickle ends with 2 values instead of one."));
  EXPECT_THAT(refusal(whole("N(")), HasSubstr("the pickle ends with"));
  EXPECT_THAT(refusal(whole("0")), HasSubstr("a value is used that is not there."));
  EXPECT_THAT(refusal(whole("2")), HasSubstr("a value is used that is not there."));
  EXPECT_THAT(refusal(whole("N\x86")), HasSubstr("a value is used that is not there."));
  EXPECT_THAT(refusal(whole("]N(a")), HasSubstr("a value is used that is not there."));
  EXPECT_THAT(refusal(whole("t")), HasSubstr("a mark is used that is not there."));
  EXPECT_THAT(refusal(whole("1")), HasSubstr("a mark is used that is not there."));
  EXPECT_THAT(refusal(whole("](NN"
                            "u")),
              HasSubstr("a key is set in what is not a dict."));
  EXPECT_THAT(refusal(whole("}N"
                            "a")),
              HasSubstr("something is appended to what is not a list."));
  EXPECT_THAT(refusal(whole("(N"
                            "e")),
              HasSubstr("something is appended to what is not a list."));
  EXPECT_THAT(refusal(whole("N"
                            "a")),
              HasSubstr("something is appended to what is not a list."));
  EXPECT_THAT(refusal(whole("}(N"
                            "u")),
              HasSubstr("a key of a dict lacks its value."));
}

TEST(PickleHostile, EveryTruncationIsReported) {
  const std::string data = whole(raw("\x95\x30\x00\x00\x00\x00\x00\x00\x00") +
                                 dict(text("segments") + raw("\x94") +
                                      list(integer(1) + raw("\x88K\x05M\x00\x01J\x00\x00\x00\x00")) +
                                      text("b") + raw("G\x3f\xe8\x00\x00\x00\x00\x00\x00")));
  ASSERT_THAT(read(data), StartsWith("{\"segments\" [1 True 5 256 0 ] \"b\" 0.75"));
  EXPECT_EQ(refusal(""), "x.pickle: is empty; a pickle of protocol 2 to 5 is expected.");
  for (std::size_t size = 1; size < data.size(); ++size) {
    EXPECT_THAT(refusal(data.substr(0, size)), StartsWith("x.pickle: byte ")) << size;
  }
}

// Whatever one byte is changed to, the answer is a value or one InputError.
TEST(PickleHostile, EveryChangedByteIsSurvived) {
  const std::string data =
      whole(dict(text("k") + raw("\x94") + list(integer(7) + raw("h\x00K\x05")) + text("b") + "N"));
  int accepted = 0;
  for (std::size_t place = 0; place < data.size(); ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = data;
      changed[place] = static_cast<char>(byte);
      if (refusal(changed) == "accepted") ++accepted;
    }
  }
  EXPECT_GT(accepted, 1000);  // changed numbers and letters
}

}  // namespace
}  // namespace vramlab
