// What only the static program has (cmake/VramlabStatic.cmake).
#include <fmt/format-inl.h>

// Says to plugins/plugin_loader.cpp that there is no dynamic loader. dlopen of a static program would need
// the very C library that it was linked with.
extern "C" const char vramlab_is_static;
extern "C" const char vramlab_is_static = 1;

// Debian has fmt only as a shared library. Its header holds the functions, and these are the templates that
// other sources take from the library.
FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
