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
/// Compression of archives with zlib: `save_npz("model.npz", tree, vv::zlib{})`. The program must link zlib (CMake:
/// `find_package(ZLIB)`, `ZLIB::ZLIB`). If zlib is not installed, this header declares nothing.
namespace varve {

#if __has_include(<zlib.h>)
/// A codec for ZIP's method 8, "deflate".
struct zlib {
  static constexpr bool compresses = true;
  int level = 6; ///< 1 is fastest, 9 compresses best

  /// Decompresses into exactly `size` bytes. Returns false if the input is damaged or has another length.
  static bool inflate(std::string_view bytes, char* to, std::size_t size) {
    z_stream s{};
    if (inflateInit2(&s, -15) != Z_OK) return false;
    bool const ends = run(s, bytes, to, size, [](z_stream* z) { return ::inflate(z, Z_NO_FLUSH); });
    inflateEnd(&s);
    return ends && s.total_out == size && s.total_in == bytes.size();
  }
  /// Returns the compressed bytes, or a copy of `bytes` if compression would enlarge them.
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
  /// Runs a stream to its end, in parts whose sizes fit in 32 bits. Returns false if the end is not reached.
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
