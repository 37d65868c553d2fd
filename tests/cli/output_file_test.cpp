#include "report/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "lab/json.hpp"
#include "recordings/input_file.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

TEST(OutputFile, ReplacesTheOldContentWhole) {
  const ScratchFolder folder;
  write_file(folder.file("a"), "a longer text");
  write_file(folder.file("a"), "short");
  EXPECT_EQ(read_input_file(folder.file("a")), "short");
}

TEST(OutputFile, KeepsTheModeOfWhatItReplaces) {
  const ScratchFolder folder;
  const auto mode_of = [&](const std::string& name) {
    struct stat file {};
    ::stat(folder.file(name).c_str(), &file);
    return file.st_mode & 07777U;
  };
  write_file(folder.file("a"), "old");
  for (const ::mode_t mode : {0600U, 0664U, 0755U}) {
    ::chmod(folder.file("a").c_str(), mode);
    write_file(folder.file("a"), "new");
    EXPECT_EQ(mode_of("a"), mode);
  }
  std::filesystem::create_symlink("a", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_EQ(mode_of("a"), 0755U);
}

TEST(OutputFile, MakesTheFileThatADanglingLinkNames) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("a", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_input_file(folder.file("a")), "new");
}

// The superuser may write everything.
TEST(OutputFile, LeavesAFileThatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is forbidden to this user";
  const ScratchFolder folder;
  write_file(folder.file("a"), "old");
  ::chmod(folder.file("a").c_str(), 0444);
  EXPECT_THROW(write_file(folder.file("a"), "new"), InputError);
  EXPECT_EQ(read_input_file(folder.file("a")), "old");
}

TEST(OutputFile, FollowsALinkAndWritesIntoADevice) {
  const ScratchFolder folder;
  write_file(folder.file("a"), "old");
  std::filesystem::create_symlink("a", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_input_file(folder.file("a")), "new");
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

// So a killed program leaves nothing either, where the file system has files without a name.
TEST(OutputFile, HasNoNameUntilItIsComplete) {
  const ScratchFolder folder;
  const int probe = ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (probe < 0) GTEST_SKIP() << "no files without a name on this file system";
  ::close(probe);
  write_file(folder.file("a"), "old");
  OutputFile file{folder.file("a")};
  file.write("new");
  for (const auto& entry : std::filesystem::directory_iterator{folder.path()}) {
    EXPECT_EQ(entry.path().filename(), "a");
  }
  EXPECT_EQ(read_input_file(folder.file("a")), "old");
  file.commit();
  EXPECT_EQ(read_input_file(folder.file("a")), "new");
}

// No disk has 4 EiB.
TEST(OutputFile, ThatHasNoRoomIsRefusedBeforeItIsWritten) {
  const ScratchFolder folder;
  EXPECT_NO_THROW(require_room(folder.file("a"), 1, "Take less."));
  EXPECT_NO_THROW(require_room("/dev/null", std::uint64_t{1} << 62, "Take less."));
  try {
    require_room(folder.file("a"), std::uint64_t{1} << 62, "Take less.");
    FAIL() << "it was not refused";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("would have at least 4194304.0 TiB"), std::string::npos) << text;
    EXPECT_NE(text.find("Take less."), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace vramlab
