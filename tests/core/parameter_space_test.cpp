#include "core/parameter_space.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

TEST(ParameterSpace, FindsByNameAndClampsToBounds) {
  const ParameterSpace space{{{"batch", 2, 64}, {"lq", 32, 256}}};
  EXPECT_EQ(space.find("lq"), 1u);
  EXPECT_EQ(space.find("seq"), std::nullopt);
  EXPECT_EQ(space.clamp({1, 300}), (Point{2, 256}));
  EXPECT_EQ(space.clamp({10, 130}), (Point{10, 130}));
}

}  // namespace
}  // namespace vramlab
