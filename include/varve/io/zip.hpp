// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Archives in the ZIP format, as far as `.npz` files need it: stored entries, and compressed ones if the caller passes
/// a codec (`io/zlib.hpp`). Errors name the entry and the place of malformed data.
namespace varve {

/// A codec that does not compress. Reading a compressed entry with it is an error.
struct stored {
  static constexpr bool compresses = false;
  static bool inflate(std::string_view, char*, std::size_t) { return false; }
  static std::string deflate(std::string_view) { return {}; }
};

namespace detail {
/// Returns ZIP's checksum (CRC-32).
constexpr std::uint32_t crc32(std::string_view bytes) {
  struct table {
    std::uint32_t v[256];
  };
  constexpr table of_bytes = [] {
    table t{};
    for (std::uint32_t k = 0; k < 256; ++k) {
      std::uint32_t c = k;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1 ? 0xEDB88320u : 0u) ^ c >> 1;
      t.v[k] = c;
    }
    return t;
  }();
  std::uint32_t c = 0xFFFFFFFFu;
  for (char b : bytes) c = of_bytes.v[(c ^ static_cast<unsigned char>(b)) & 255] ^ c >> 8;
  return ~c;
}

/// A file of an archive and how it is stored there.
struct zip_entry {
  std::string name;
  std::uint32_t method = 0, crc = 0;
  std::uint64_t size = 0, packed = 0; // its size in bytes, and the size in the archive
  std::uint64_t at = 0;               // the position of its header
};

/// Reads an archive in memory. It never allocates more than the size of the archive, except for decompressed entries.
/// Their size is checked against the best compression that the method can reach.
class zip_reader {
public:
  explicit zip_reader(std::string_view bytes) : bytes_(bytes) {}
  std::vector<zip_entry> entries() const {
    std::size_t const end = end_record();
    std::uint64_t count = number(end + 10, 2, "the end of the archive");
    std::uint64_t at = number(end + 16, 4, "the end of the archive");
    if ((count == 0xFFFF || at == 0xFFFFFFFF) && end >= 20 && has(end - 20, "PK\x06\x07")) { // ZIP64
      std::uint64_t const large_end = number(end - 20 + 8, 8, "the end of the archive");
      if (!has(large_end, "PK\x06\x06"))
        refuse("byte " + std::to_string(large_end) + ": the end of a large archive expected");
      count = number(large_end + 32, 8, "the end of the archive"),
      at = number(large_end + 48, 8, "the end of the archive");
    }
    if (count > bytes_.size() / 46)
      refuse("the archive says that it has " + std::to_string(count) + " files, more than its bytes could hold");
    std::vector<zip_entry> r;
    std::uint64_t left = bytes_.size();
    for (std::uint64_t k = 0; k < count; ++k) {
      zip_entry const& e = r.emplace_back(entry_at(at));
      if (e.packed > left) refuse(e.name + ": it shares bytes with another file of the archive, or has too many");
      left -= e.packed;
    }
    return r;
  }
  /// Returns the bytes of an entry and verifies its checksum. If the entry is compressed, `buffer` holds the bytes.
  template <class Codec>
  std::string_view read(zip_entry const& e, std::string& buffer, Codec const& codec) const {
    std::string_view const data = unchecked(e, buffer, codec);
    check(e, data);
    return data;
  }
  /// Throws if the bytes do not have the checksum of the archive.
  void check(zip_entry const& e, std::string_view data) const {
    if (crc32(data) != e.crc) refuse(e.name + ": its bytes do not have the checksum of the archive: it is damaged");
  }
  /// Returns the bytes of an entry without verifying its checksum, so that stored bytes are not accessed.
  template <class Codec>
  std::string_view unchecked(zip_entry const& e, std::string& buffer, Codec const& codec) const {
    std::string const place = e.name + ": ";
    if (!has(e.at, "PK\x03\x04")) refuse(place + "byte " + std::to_string(e.at) + ": the header of a file expected");
    std::uint64_t const from = e.at + 30 + number(e.at + 26, 2, e.name) + number(e.at + 28, 2, e.name);
    if (from > bytes_.size() || e.packed > bytes_.size() - from)
      refuse(place + "its " + std::to_string(e.packed) + " bytes from byte " + std::to_string(from) +
             " on end beyond those of the archive, " + std::to_string(bytes_.size()));
    std::string_view data = bytes_.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(e.packed));
    if (e.method == 0) {
      if (e.size != e.packed) refuse(place + "it is stored, and has two sizes");
    } else if (e.method == 8) {
      if constexpr (!Codec::compresses)
        refuse(place + "it is compressed: include <varve/io/zlib.hpp>, link zlib, and read with vv::zlib{}");
      if (e.size / 1032 > e.packed + 1) // deflate cannot pack better
        refuse(place + std::to_string(e.size) + " bytes are said to be packed in " + std::to_string(e.packed));
      buffer.resize(static_cast<std::size_t>(e.size));
      if (!codec.inflate(data, buffer.data(), buffer.size()))
        refuse(place + "the compressed bytes from byte " + std::to_string(from) + " on are damaged");
      data = buffer;
    } else {
      refuse(place + "the compression method " + std::to_string(e.method) + " is not read");
    }
    return data;
  }

private:
  [[noreturn]] static void refuse(std::string const& what) {
    refuse::with<value_error>(("varve: zip: " + what).c_str());
  }
  bool has(std::uint64_t at, char const* four) const {
    return at <= bytes_.size() && bytes_.size() - at >= 4 && bytes_.compare(static_cast<std::size_t>(at), 4, four) == 0;
  }
  std::uint64_t number(std::uint64_t at, int width, std::string const& place) const {
    if (at > bytes_.size() || bytes_.size() - at < static_cast<std::uint64_t>(width))
      refuse(place + ": the archive ends within it, at byte " + std::to_string(bytes_.size()));
    std::uint64_t r = 0;
    for (int k = width; k-- > 0;)
      r = r << 8 | static_cast<unsigned char>(bytes_[static_cast<std::size_t>(at) + static_cast<std::size_t>(k)]);
    return r;
  }
  /// Finds the end record. Only a comment of at most 65535 bytes may follow it.
  std::size_t end_record() const {
    for (std::size_t k = 22; k <= bytes_.size() && k <= 22 + 65535; ++k)
      if (has(bytes_.size() - k, "PK\x05\x06")) return bytes_.size() - k;
    refuse("there is no end of an archive in these " + std::to_string(bytes_.size()) + " bytes");
  }
  zip_entry entry_at(std::uint64_t& at) const {
    std::string const place = "byte " + std::to_string(at);
    if (!has(at, "PK\x01\x02")) refuse(place + ": an entry of the directory expected");
    zip_entry e;
    if (number(at + 8, 2, place) & 1) refuse(place + ": an encrypted file is not read");
    e.method = static_cast<std::uint32_t>(number(at + 10, 2, place));
    e.crc = static_cast<std::uint32_t>(number(at + 16, 4, place));
    e.packed = number(at + 20, 4, place), e.size = number(at + 24, 4, place);
    std::uint64_t const name = number(at + 28, 2, place), extra = number(at + 30, 2, place);
    std::uint64_t const comment = number(at + 32, 2, place), next = at + 46 + name + extra + comment;
    e.at = number(at + 42, 4, place);
    if (next > bytes_.size()) refuse(place + ": the archive ends within an entry of the directory");
    e.name = bytes_.substr(static_cast<std::size_t>(at) + 46, static_cast<std::size_t>(name));
    // Large files have their sizes and position in this extra field.
    for (std::uint64_t x = at + 46 + name, end = x + extra; x + 4 <= end;) {
      std::uint64_t const kind = number(x, 2, e.name), length = number(x + 2, 2, e.name), behind = x + 4 + length;
      x += 4;
      if (kind == 1)
        for (std::uint64_t* n : {&e.size, &e.packed, &e.at})
          if (*n == 0xFFFFFFFF && x + 8 <= behind) *n = number(x, 8, e.name), x += 8;
      x = behind;
    }
    at = next;
    return e;
  }
  std::string_view bytes_;
};

/// Writes an archive, file by file.
class zip_writer {
public:
  template <class Codec>
  void add(std::string const& name, std::string const& bytes, Codec const& codec) {
    std::string const packed = Codec::compresses ? codec.deflate(bytes) : std::string();
    bool const smaller = Codec::compresses && packed.size() < bytes.size();
    std::string const& data = smaller ? packed : bytes;
    if (bytes.size() >= 0xFFFFFFFF || out_.size() >= 0xFFFFFFFF || name.size() > 0xFFFF || count_ == 0xFFFE)
      refuse::with<value_error>(
          ("varve: zip: " + name + ": archives of 4 GB, or of 65535 files, are not written").c_str());
    std::string head;
    put(head, smaller ? 20 : 10, 2), put(head, 0x0800, 2), put(head, smaller ? 8 : 0, 2); // names are UTF-8
    put(head, 0, 2), put(head, 0x21, 2);                                                  // 1 January 1980
    put(head, crc32(bytes), 4), put(head, data.size(), 4), put(head, bytes.size(), 4);
    put(head, name.size(), 2);
    directory_ += "PK\x01\x02";
    put(directory_, 20, 2);
    directory_ += head;
    put(directory_, 0, 2), put(directory_, 0, 2), put(directory_, 0, 2), put(directory_, 0, 2), put(directory_, 0, 4);
    put(directory_, out_.size(), 4);
    directory_ += name;
    out_ += "PK\x03\x04" + head;
    // Stored bytes begin at multiples of 64, so that they can be mapped. The padding field is one that other tools
    // write.
    std::size_t const begin = out_.size() + 2 + name.size(), padding = smaller ? 0 : 6 + (2 * 64 - 6 - begin % 64) % 64;
    put(out_, padding, 2);
    out_ += name;
    if (padding) put(out_, 0xD935, 2), put(out_, padding - 4, 2), put(out_, 64, 2), out_.append(padding - 6, '\0');
    out_ += data;
    ++count_;
  }
  std::string finish() && {
    std::size_t const at = out_.size();
    if (at + directory_.size() >= 0xFFFFFFFF) refuse::with<value_error>("varve: zip: archives of 4 GB are not written");
    out_ += directory_ + "PK\x05\x06";
    put(out_, 0, 4), put(out_, count_, 2), put(out_, count_, 2);
    put(out_, directory_.size(), 4), put(out_, at, 4), put(out_, 0, 2);
    return std::move(out_);
  }

private:
  static void put(std::string& to, std::uint64_t n, int width) {
    for (int k = 0; k < width; ++k) to += static_cast<char>(n >> 8 * k & 255);
  }
  std::string out_, directory_;
  std::uint64_t count_ = 0;
};
} // namespace detail

} // namespace varve

#pragma GCC diagnostic pop
