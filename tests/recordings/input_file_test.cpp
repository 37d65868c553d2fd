#include "recordings/input_file.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

class InputFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  template <class... Filters>
  std::filesystem::path write(const std::string& content, const Filters&... filters) {
    const std::filesystem::path file = folder_ / "file";
    boost::iostreams::filtering_ostream out;
    (out.push(filters), ...);
    std::ofstream sink(file, std::ios::binary);
    out.push(sink);
    out << content;
    out.reset();
    return file;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("vramlab_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(InputFiles, IsReadAsItIs) {
  const std::string content("a\0b\n", 4);
  EXPECT_EQ(read_input_file(write(content)), content);
}

TEST_F(InputFiles, IsUnpackedByItsFirstBytes) {
  EXPECT_EQ(read_input_file(write("content", boost::iostreams::gzip_compressor())), "content");
  EXPECT_EQ(read_input_file(write("content", boost::iostreams::zstd_compressor())), "content");
}

TEST_F(InputFiles, IsRefusedWhereItIsMissingOrDamaged) {
  EXPECT_THROW(read_input_file("/nowhere/file"), InputError);
  EXPECT_THROW(read_input_file(std::filesystem::temp_directory_path()), InputError);
  EXPECT_THROW(read_input_file(write("\x1f\x8b damaged")), InputError);
}

TEST_F(InputFiles, SaysThatACompressedFileEndsEarly) {
  for (const std::uintmax_t missing :
       {3U, 9U}) {  // of the eight bytes behind the content, and of the content
    const auto file = write("content", boost::iostreams::gzip_compressor());
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - missing);
    try {
      read_input_file(file);
      ADD_FAILURE() << "accepted without its last " << missing;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), file.string() + ": the compressed file ends early: it was cut off.");
    }
  }
}

// 64 MiB of noughts are some 64 KiB as gzip.
TEST_F(InputFiles, UnpacksNoMoreThanIsAllowed) {
  const std::string content(64 << 20, '\0');
  for (const bool is_gzip : {true, false}) {
    const auto file = is_gzip ? write(content, boost::iostreams::gzip_compressor())
                              : write(content, boost::iostreams::zstd_compressor());
    EXPECT_EQ(read_input_file(file).size(), content.size());
    const InflationLimit limit{32_MiB};
    try {
      read_input_file(file);
      ADD_FAILURE();
    } catch (const InputError& error) {
      EXPECT_EQ(error.problems().front().what,
                "unpacks to more than 32.0 MiB. If that is right, allow more: --max-inflated 128MiB.");
    }
    std::string piece(1 << 20, ' ');
    InputFile in(file);
    EXPECT_THROW(while (in.read(piece.data(), piece.size()) > 0){}, InputError);
  }
  EXPECT_EQ(read_input_file(write(content)).size(), content.size());  // a plain one is as large as it looks
}

TEST_F(InputFiles, SaysWhatIsWrong) {
  const auto error_of = [](const std::filesystem::path& file) -> std::string {
    try {
      read_input_file(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(error_of("/nowhere/file"), "/nowhere/file: does not exist.");
  EXPECT_EQ(error_of("/"), "/: is a folder; a file is needed.");
}

TEST_F(InputFiles, AColumnThatIsThereTwiceIsNotRead) {
  const CsvTable table(write("a,b,a\n1,2,3\n"));
  EXPECT_EQ(table.text(0, "b"), "2");
  EXPECT_THROW(static_cast<void>(table.text(0, "a")), InputError);
}

// As a shell's <(...) hands it in.
TEST_F(InputFiles, MayBeAPipe) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::jthread writer([&] { std::ofstream(pipe) << "ab"; });
  EXPECT_EQ(read_input_file(pipe), "ab");
}

}  // namespace
}  // namespace vramlab
