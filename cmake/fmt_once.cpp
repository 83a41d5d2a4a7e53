// The fmt library, compiled once. Distributions ship it as a shared library or as headers: the program needs libc alone, and
// header-only costs a third of every other file's compile time. Dependencies.cmake takes this file where it links (fmt 9).
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref) -> fmt::detail::thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl(fmt::detail::locale_ref) -> char;
