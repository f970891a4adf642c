// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/error.hpp>

#if __has_include(<zlib.h>)
#include <climits>
#include <string>
#include <string_view>
#include <zlib.h>
#endif

/// @file
/// Compression of archives by zlib: `save_npz("model.npz", tree, vv::zlib{})`. The program links zlib (CMake:
/// `find_package(ZLIB)`, `ZLIB::ZLIB`). Where zlib is not installed this header has nothing.
namespace varve {

#if __has_include(<zlib.h>)
/// Method 8 of ZIP, "deflate".
struct zlib {
  static constexpr bool compresses = true;
  int level = 6; ///< 1: fast, 9: small

  /// Fills exactly `size` bytes; false of damaged ones, and of those that are fewer or more.
  static bool inflate(std::string_view bytes, char* to, std::size_t size) {
    z_stream s{};
    if (inflateInit2(&s, -15) != Z_OK) return false;
    bool const ends = run(s, bytes, to, size, [](z_stream* z) { return ::inflate(z, Z_NO_FLUSH); });
    inflateEnd(&s);
    return ends && s.total_out == size && s.total_in == bytes.size();
  }
  /// The compressed bytes; empty where they would not be fewer.
  std::string deflate(std::string_view bytes) const {
    z_stream s{};
    if (deflateInit2(&s, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      refuse::with<value_error>("varve: zlib: this level is not known");
    std::string r(bytes.size(), '\0');
    bool const ends = run(s, bytes, r.data(), r.size(), [&](z_stream* z) {
      return ::deflate(z, z->total_in + z->avail_in == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    });
    r.resize(ends ? s.total_out : 0);
    deflateEnd(&s);
    return ends ? r : std::string(bytes);
  }

private:
  /// Runs a stream to its end, giving it what it counts in 32 bits; false if it does not reach that.
  template <class Step>
  static bool run(z_stream& s, std::string_view in, char* out, std::size_t room, Step const& step) {
    char nothing = 0;
    s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    s.next_out = reinterpret_cast<Bytef*>(room ? out : &nothing);
    for (;;) {
      std::size_t const in_left = in.size() - s.total_in, out_left = room - s.total_out;
      s.avail_in = static_cast<uInt>(in_left < UINT_MAX / 2 ? in_left : UINT_MAX / 2);
      s.avail_out = static_cast<uInt>(out_left < UINT_MAX / 2 ? out_left : UINT_MAX / 2);
      uLong const read = s.total_in, written = s.total_out;
      int const r = step(&s);
      if (r == Z_STREAM_END) return true;
      if (r != Z_OK || (s.total_in == read && s.total_out == written)) return false;
    }
  }
};
#endif

} // namespace varve

#pragma GCC diagnostic pop
