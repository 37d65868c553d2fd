#include "report/output_file.hpp"

#include <gtest/gtest.h>

#include "lab/json_text.hpp"
#include "sim/core/error.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

TEST(OutputFile, ReplacesTheOldContentWhole) {
  const ScratchFolder folder;
  write_file(folder.file("a"), "a longer text");
  write_file(folder.file("a"), "short");
  EXPECT_EQ(read_text_file(folder.file("a")), "short");
}

TEST(OutputFile, FollowsALinkAndWritesIntoADevice) {
  const ScratchFolder folder;
  write_file(folder.file("a"), "old");
  std::filesystem::create_symlink("a", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_text_file(folder.file("a")), "new");
  write_file("/dev/null", "text");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(OutputFile, LeavesNothingBehindWhenItFails) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.file("a"));
  EXPECT_THROW(write_file(folder.file("a"), "text"), InputError);
  EXPECT_THROW(write_file(folder.file("no/b"), "text"), InputError);
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{folder.path()}) ++entries;
  EXPECT_EQ(entries, 1);
}

}  // namespace
}  // namespace vramlab
