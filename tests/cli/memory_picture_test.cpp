// The static time line of memory by category.
#include <string>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "report/pictures.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::Not;

MemoryPicture small_picture() {
  MemoryPicture picture;
  picture.title = "it's small";
  picture.axis_name = "actions";
  picture.axis = {0, 10, 20, 100};
  picture.bands = {{"weights", {1_GiB, 1_GiB, 1_GiB, 1_GiB}}, {"activations", {0, 2_GiB, 1_GiB, 0}}};
  picture.reserved = {1_GiB, 3_GiB, 4_GiB, 4_GiB};
  picture.marks = {{0, "too short"}, {1, "first"}, {50, "second\nline"}};
  return picture;
}

std::string drawn(const MemoryPicture& picture) {
  const ScratchFolder folder;
  draw_memory_picture(picture, folder.file("a.svg"));
  return read_input_file(folder.file("a.svg"));
}

TEST(MemoryPicture, NamesBandsAndStretches) {
  const std::string picture = drawn(small_picture());
  for (const char* text : {"it's small", "weights", "activations", "reserved", "first", "second line", "GiB"})
    EXPECT_THAT(picture, HasSubstr(text));
  EXPECT_THAT(picture, Not(HasSubstr("too short")));  // it would stand in the next stretch
  EXPECT_THAT(picture, Not(HasSubstr("limit")));
  EXPECT_THAT(picture, Not(HasSubstr("request that failed")));
  EXPECT_EQ(picture, drawn(small_picture()));
}

// The axis ends at 1.12 x 4 GiB; the plot is from y = 78.3 to its lower edge. Activations end at 3, 2 and 1
// GiB, each at its own height, and a band lies on the one below.
TEST(MemoryPicture, EachBandIsAsHighAsItsBytes) {
  MemoryPicture halved = small_picture();
  for (MemoryPicture::Band& band : halved.bands)
    for (Bytes& bytes : band.bytes) bytes /= 2;
  for (Bytes& bytes : halved.reserved) bytes /= 2;
  const std::string whole = drawn(small_picture());
  const auto areas = [](const std::string& picture) {
    std::vector<std::string> found;
    for (std::size_t at = picture.find("<polygon"); at != std::string::npos;
         at = picture.find("<polygon", at + 1))
      found.push_back(picture.substr(at, picture.find('>', at) - at));
    return found;
  };
  EXPECT_EQ(areas(whole).size(), 4U);             // two of the legend
  EXPECT_EQ(areas(whole), areas(drawn(halved)));  // half of all is the same picture, but for its axis
}

// A limit far above all reserved memory would leave nothing to see of it.
TEST(MemoryPicture, ShowsALimitThatIsNear) {
  MemoryPicture picture = small_picture();
  picture.limit = 5_GiB;
  picture.failures = {20};
  EXPECT_THAT(drawn(picture), HasSubstr("limit"));
  EXPECT_THAT(drawn(picture), HasSubstr("request that failed"));
  picture.limit = 80_GiB;
  EXPECT_THAT(drawn(picture), Not(HasSubstr("limit")));
}

TEST(MemoryPicture, OfNothingIsAnEmptyPlot) {
  EXPECT_THAT(drawn({.title = "nothing"}), HasSubstr("nothing"));
  EXPECT_THROW(draw_memory_picture({}, "a.gif"), InputError);
}

}  // namespace
}  // namespace vramlab
