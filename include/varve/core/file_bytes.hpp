// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/message.hpp>

#include <fstream>
#include <string>

/// @file
/// Reading and writing whole files as bytes.
namespace varve::detail {

/// Returns all bytes of a file, or of a pipe until its end. Throws `value_error`, which names reader and file, if the
/// file cannot be read.
inline std::string bytes_of_file(std::string const& reader, std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  std::string r;
  for (char part[1 << 14]; in;) {
    in.read(part, sizeof part);
    r.append(part, static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof() || in.bad())
    refuse::with<value_error>(("varve: " + reader + ": the file " + path + " cannot be read").c_str());
  return r;
}
/// Writes the bytes to a file and replaces an existing one. Throws `value_error`, which names writer and file, if that
/// fails.
inline void write_file(std::string const& writer, std::string const& path, std::string const& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush())
    refuse::with<value_error>(("varve: " + writer + ": the file " + path + " cannot be written").c_str());
}

} // namespace varve::detail

#pragma GCC diagnostic pop
