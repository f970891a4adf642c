// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/shape/environment.hpp>
#include <varve/value/tensor.hpp>

#include <string>
#include <vector>

namespace varve {

/// The specification of one size of an argument of an exported program.
struct dim_spec {
  enum class kind : unsigned char {
    fixed,     // the size of the example
    automatic, // any size that the program allows; a number if it needs one
    dynamic,   // any size that the program allows; an error if it needs one number
    named,     // `times * name + plus`, in a range
  };
  kind is = kind::fixed;
  std::string name{};
  index_t least = 0, greatest = size_range::unlimited; // range of the name
  index_t times = 1, plus = 0;

  /// Builds an increasing linear expression of a named size: `2 * n + 1`. Throws `value_error` for other operands.
  friend dim_spec operator*(index_t k, dim_spec d) {
    if (k < 1 || d.is != kind::named)
      refuse::with<value_error>("varve: export: a derived size increases with a named one");
    return d.times *= k, d.plus *= k, d;
  }
  friend dim_spec operator+(dim_spec d, index_t k) {
    if (d.is != kind::named) refuse::with<value_error>("varve: export: a derived size is made of a named one");
    return d.plus += k, d;
  }
  friend dim_spec operator-(dim_spec const& d, index_t k) { return d + -k; }

  bool is_derived() const { return times != 1 || plus != 0; }
  /// Returns the expression as text: `2*n + 1`.
  std::string text() const {
    std::string r = times == 1 ? name : std::to_string(times) + "*" + name;
    if (plus) r += (plus > 0 ? " + " : " - ") + std::to_string(plus > 0 ? plus : -plus);
    return r;
  }
};
/// Returns a size with a name and a range: `dynamic_dim("batch", 2, 64)`. Equal names mean the same number. The range
/// never includes 0 and 1, because these sizes need separate programs.
inline dim_spec dynamic_dim(std::string name, index_t least = 0, index_t greatest = size_range::unlimited) {
  if (least > greatest)
    refuse::with<value_error>(("varve: export: the size " + name + " has no numbers: from " + std::to_string(least) +
                               " to " + std::to_string(greatest))
                                  .c_str());
  return {dim_spec::kind::named, std::move(name), least, greatest};
}
/// A size that is the number in the example.
inline dim_spec const dim_static{};
/// A size that is a symbol if the program allows it.
inline dim_spec const dim_auto{dim_spec::kind::automatic};
/// A size that is a symbol without a name.
inline dim_spec const dim_dynamic_any{dim_spec::kind::dynamic};

/// One specification for each size of a tensor.
using tensor_dims = std::vector<dim_spec>;

/// Size specifications by argument tensor (`ShapesCollection`): `shapes[x] = {batch, dim_static};`.
class shapes_collection {
public:
  tensor_dims& operator[](tensor const& t) {
    for (auto& e : all_)
      if (e.of.is(t)) return e.sizes;
    all_.push_back({t, {}});
    return all_.back().sizes;
  }
  struct entry {
    tensor of;
    tensor_dims sizes;
  };
  std::vector<entry> const& entries() const { return all_; }

private:
  std::vector<entry> all_;
};

} // namespace varve

#pragma GCC diagnostic pop
