// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/file_bytes.hpp>
#include <varve/export/program_text.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/create.hpp>
#include <varve/value/tensor_of_bytes.hpp>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// Named tensors in files of the safetensors format (huggingface.co/docs/safetensors). A file consists of eight bytes
/// with the length of the header, the header as JSON, and the elements, row-major and little-endian.
namespace varve {

namespace detail {
struct safetensors_type {
  char const* name;
  dtype type;
};
inline constexpr safetensors_type safetensors_types[] = {
    {"BOOL", dtype::bool_},  {"U8", dtype::uint8},   {"I8", dtype::int8},     {"I16", dtype::int16},
    {"I32", dtype::int32},   {"I64", dtype::int64},  {"F16", dtype::float16}, {"BF16", dtype::bfloat16},
    {"F32", dtype::float32}, {"F64", dtype::float64}};

/// Reads the header of a safetensors file, which is a subset of JSON.
class safetensors_header {
public:
  struct entry {
    std::string name;
    dtype type;
    dims sizes;
    std::size_t from, to;
  };
  explicit safetensors_header(std::string_view text) : text_(text) {}
  std::vector<entry> read() {
    std::vector<entry> r;
    expect('{');
    if (take('}')) return r;
    do {
      std::string const name = string();
      expect(':');
      if (name == "__metadata__") skip_strings();
      else r.push_back(tensor_of(name));
    } while (take(','));
    expect('}');
    return r;
  }

private:
  [[noreturn]] void refuse(std::string const& what) const {
    refuse::with<value_error>(("varve: safetensors: header, column " + std::to_string(at_ + 1) + ": " + what).c_str());
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    return ++at_, true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("'") + c + "' expected");
  }
  std::string string() {
    expect('"');
    std::string r;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
        if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\\' && text_[at_] != '/'))
          refuse("an escape that names do not have");
      }
      r += text_[at_];
    }
    expect('"');
    return r;
  }
  std::size_t number() {
    space();
    std::size_t n = 0;
    auto const r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
    if (r.ec != std::errc() || n > (std::size_t{1} << 60)) refuse("a number expected");
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    return n;
  }
  void skip_strings() {
    expect('{');
    if (take('}')) return;
    do {
      (void)string();
      expect(':');
      (void)string();
    } while (take(','));
    expect('}');
  }
  entry tensor_of(std::string const& name) {
    entry e{name, dtype::bool_, {}, 0, 0};
    unsigned seen = 0;
    expect('{');
    do {
      std::string const key = string();
      expect(':');
      if (key == "dtype") {
        e.type = type();
        seen |= 1;
      } else if (key == "shape") {
        e.sizes = shape();
        seen |= 2;
      } else if (key == "data_offsets") {
        expect('[');
        e.from = number();
        expect(',');
        e.to = number();
        expect(']');
        seen |= 4;
      } else {
        refuse("dtype, shape or data_offsets expected");
      }
    } while (take(','));
    expect('}');
    if (seen != 7) refuse("the tensor " + name + " lacks its dtype, shape or data_offsets");
    return e;
  }
  dtype type() {
    std::string const s = string();
    for (auto const& t : safetensors_types)
      if (s == t.name) return t.type;
    refuse("the dtype " + s + " is not known");
  }
  dims shape() {
    dims d{};
    expect('[');
    if (take(']')) return d;
    do {
      if (d.n == max_rank) refuse("more sizes than a tensor can have");
      d.push_back(static_cast<index_t>(number()));
    } while (take(','));
    expect(']');
    return d;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};
inline std::string json_string(std::string const& s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    r += c;
  }
  return r + "\"";
}
} // namespace detail

/// Named tensors in order: a vector of pairs. `all["weight"]` and `all.at("weight")` find a tensor by name, and throw
/// `value_error` with the existing names if there is none.
struct named_tensors : std::vector<std::pair<std::string, tensor>> {
  using std::vector<value_type>::vector;
  using std::vector<value_type>::operator[];
  using std::vector<value_type>::at;
  named_tensors(std::vector<value_type> all) : std::vector<value_type>(std::move(all)) {}

  bool contains(std::string_view name) const { return find(name) != end(); }
  tensor const& at(std::string_view name) const {
    auto const it = find(name);
    if (it == end()) refuse_name(name);
    return it->second;
  }
  tensor const& operator[](std::string_view name) const { return at(name); }

private:
  const_iterator find(std::string_view name) const {
    return std::find_if(begin(), end(), [&](value_type const& e) { return e.first == name; });
  }
  [[noreturn]] void refuse_name(std::string_view name) const {
    std::string there;
    for (auto const& e : *this) there += (there.empty() ? "" : ", ") + e.first;
    refuse::with<value_error>(("varve: there is no tensor of the name " + std::string(name) + ", but " +
                               (there.empty() ? "none at all" : there))
                                  .c_str());
  }
};

/// Returns tensors as the bytes of a safetensors file. Throws `dtype_error` for complex tensors, which the format
/// lacks, and `value_error` if two tensors have the same name.
template <class T = tensor>
std::string to_safetensors(named_tensors const& tensors) {
  std::string header = "{", data;
  // Tensors with wide elements come first, so that all lie at multiples of their element size and can be mapped.
  std::vector<std::size_t> from(tensors.size());
  for (int const wide : {8, 4, 2, 1})
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      if (itemsize(tensors[k].second.dtype()) != wide) continue;
      T const c = contiguous(T(tensors[k].second.detach()));
      from[k] = data.size();
      if (c.numel()) data.append(static_cast<char const*>(c.raw()), static_cast<std::size_t>(c.numel() * wide));
    }
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    auto const& [name, t] = tensors[k];
    for (std::size_t j = 0; j < k; ++j)
      if (tensors[j].first == name)
        refuse::with<value_error>(("varve: safetensors: two tensors have the name " + name).c_str());
    char const* type = nullptr;
    for (auto const& known : detail::safetensors_types)
      if (known.type == t.dtype()) type = known.name;
    if (!type) refuse::with<dtype_error>((std::string("varve: safetensors has no ") + varve::name(t.dtype())).c_str());
    header += (k ? "," : "") + detail::json_string(name) + ":{\"dtype\":\"" + type + "\",\"shape\":[";
    for (int d = 0; d < t.dim(); ++d) header += (d ? "," : "") + std::to_string(t.size(d));
    std::size_t const to = from[k] + static_cast<std::size_t>(t.numel() * itemsize(t.dtype()));
    header += "],\"data_offsets\":[" + std::to_string(from[k]) + "," + std::to_string(to) + "]}";
  }
  header += "}";
  while (header.size() % 8) header += ' ';
  std::string r(8, '\0');
  for (int k = 0; k < 8; ++k) r[static_cast<std::size_t>(k)] = static_cast<char>(header.size() >> 8 * k & 255);
  return r + header + data;
}
namespace detail {
/// Returns the tensors of a file; `make` creates each from its bytes (see `copy_of_bytes`).
template <class Make>
named_tensors read_safetensors(std::string_view bytes, Make const& make) {
  auto const refuse = [](std::string const& what) {
    refuse::with<value_error>(("varve: safetensors: " + what).c_str());
  };
  if (bytes.size() < 8) refuse("the file has " + std::to_string(bytes.size()) + " bytes, and 8 are the least");
  std::uint64_t length = 0;
  for (int k = 8; k-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(k)]);
  if (length > bytes.size() - 8)
    refuse("the header has " + std::to_string(length) + " bytes, and the file " + std::to_string(bytes.size()));
  std::string_view const data = bytes.substr(8 + static_cast<std::size_t>(length));
  named_tensors r;
  std::size_t used = 0;
  for (auto const& e : detail::safetensors_header(bytes.substr(8, static_cast<std::size_t>(length))).read()) {
    std::size_t count = static_cast<std::size_t>(itemsize(e.type));
    bool fits = e.from <= e.to && e.to <= data.size();
    for (int k = 0; k < e.sizes.n; ++k) fits = fits && !__builtin_mul_overflow(count, std::size_t(e.sizes[k]), &count);
    if (!fits || count != e.to - e.from)
      refuse("the tensor " + e.name + " of shape " + to_string(e.sizes) + " does not have the bytes " +
             std::to_string(e.from) + " to " + std::to_string(e.to));
    for (auto const& known : r)
      if (known.first == e.name) refuse("two tensors have the name " + e.name);
    if ((used += count) > data.size()) refuse("the tensor " + e.name + " shares bytes with another one");
    r.emplace_back(e.name, make(data.substr(e.from, count), e.sizes, e.type));
  }
  return r;
}
} // namespace detail

/// Returns the tensors in the bytes of a safetensors file, in the order of the header. Throws `value_error` with the
/// place of an error. Never allocates more than the size of the bytes.
template <class T = tensor>
named_tensors from_safetensors(std::string_view bytes) {
  return detail::read_safetensors(bytes, detail::copy_of_bytes<T>{});
}

/// Writes an exported program into two files: its text at `path`, its state at `path` + ".safetensors". Throws
/// `value_error` if a file cannot be written, or if the program calls a custom function that is not registered
/// (`saved_function`).
inline void save(exported_program const& p, std::string const& path) {
  named_tensors state;
  for (std::size_t k = 0; k < p.state.size(); ++k)
    state.emplace_back(p.signature.inputs[p.tokens() + k].name, p.state[k]);
  std::string const text = to_text(p), tensors = to_safetensors(state);
  detail::write_file("save", path, text);
  detail::write_file("save", path + ".safetensors", tensors);
}
/// Reads an exported program that `save` wrote. The process must contain the operators of the program. Throws
/// `value_error` with line and column if the text is not a program, or if the state does not match it.
inline exported_program load(std::string const& path) {
  exported_program p = program_from_text(detail::bytes_of_file("load", path));
  named_tensors const state = from_safetensors(detail::bytes_of_file("load", path + ".safetensors"));
  for (std::size_t k = p.tokens(); k < p.signature.inputs.size(); ++k) {
    input_spec const& i = p.signature.inputs[k];
    if (i.is == input_spec::kind::user_input) break;
    node const& n = p.graph.nodes[static_cast<std::ptrdiff_t>(k)];
    tensor found;
    for (auto const& [name, t] : state)
      if (name == i.name) found = t;
    if (!found.defined() || found.dtype() != n.out.type || !known_equal(found.sizes(), n.out.sizes))
      refuse::with<value_error>(
          ("varve: load: there is no tensor " + i.name + " of the dtype and shape that the program has").c_str());
    if (i.requires_grad && !is_floating(found.dtype()))
      refuse::with<value_error>(
          ("varve: load: " + i.name + " is said to require a gradient, and is not floating").c_str());
    if (i.requires_grad) found.requires_grad_();
    p.state.push_back(found);
  }
  return p;
}

} // namespace varve

#pragma GCC diagnostic pop
