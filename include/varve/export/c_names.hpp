// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <cctype>
#include <string>
#include <string_view>

/// @file
/// Names that functions and parameters can have in C, with the headers that a text and its self-test include.
namespace varve::c99 {

/// Words of C, words of C++, in which the header can also be read, types, and macros that stand alone.
inline constexpr std::string_view keywords =
    " auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register return short restrict signed sizeof static struct switch union typedef void while volatile unsigned "
    "bool main asm alignas alignof and and_eq bitand bitor catch class compl concept consteval constexpr constinit "
    "const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires "
    "static_assert static_cast template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq "
    "size_t ptrdiff_t max_align_t true false NULL NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL math_errhandling signgam ";
/// Functions of math.h, whose names may end in f or l.
inline constexpr std::string_view of_numbers =
    " acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim "
    "floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma lgamma_r llrint llround log log10 log1p "
    "log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb "
    "scalbln scalbn significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn drem finite isinf isnan ";
/// Other functions of the headers, and macros like functions.
inline constexpr std::string_view of_headers =
    " fpclassify isfinite isgreater isgreaterequal isless islessequal islessgreater isnormal isunordered signbit "
    "offsetof memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlen "
    "strncat strncmp strncpy strndup strpbrk strrchr strspn strstr strtok strxfrm index rindex clearerr fclose feof "
    "ferror fflush fgetc fgetpos fgets fopen fprintf fputc fputs fread freopen fscanf fseek fsetpos ftell fwrite "
    "getc getchar getline gets perror printf putc putchar puts remove rename rewind scanf setbuf setvbuf snprintf "
    "sprintf sscanf tmpfile tmpnam ungetc vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf abort abs "
    "atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc mblen mbstowcs "
    "mbtowc qsort rand random realloc select srand srandom strtod strtof strtol strtold strtoll strtoul strtoull "
    "system wcstombs wctomb ";

/// True if a list contains the name.
inline bool is_in(std::string_view list, std::string_view name) {
  return list.find(" " + std::string(name) + " ") != std::string_view::npos;
}
/// True if C accepts the name for a parameter.
VARVE_COLD inline bool can_be_name(std::string const& name) {
  auto const begins = [&](std::string_view s) { return name.compare(0, s.size(), s) == 0; };
  auto const ends = [&](std::string_view s) {
    return name.size() >= s.size() && name.compare(name.size() - s.size(), s.size(), s) == 0;
  };
  bool r = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && !is_in(keywords, name);
  for (char const c : name) r = r && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  bool const is_type = (begins("int") || begins("uint")) && ends("_t"), // reserved for stdint.h and math.h
      is_limit = ends("_MAX") || ends("_MIN") || ends("_WIDTH") || begins("FP_") || begins("MATH_"),
             is_implementation =
                 begins("__") || (name.size() > 1 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z');
  return r && !is_type && !is_limit && !is_implementation;
}
/// True if C accepts the name for a function beside those of the headers.
VARVE_COLD inline bool can_be_function(std::string const& name) {
  bool const has_end = !name.empty() && (name.back() == 'f' || name.back() == 'l');
  return can_be_name(name) && !is_in(of_headers, name) && !is_in(of_numbers, name) &&
         !(has_end && is_in(of_numbers, name.substr(0, name.size() - 1)));
}

} // namespace varve::c99
