// SPDX-License-Identifier: BSL-1.0
// A tensor subclass: lengths and areas whose units are checked by every operator, in gradients too; and an operator of
// one's own that is registered at run time.
// output: 2 m x 3 m = 6 m\^2
// output: d\(area\)/d\(width\) = 3 m
// output: add of m\^2 and m
// output: perimeter of 2 m x 3 m: 10 m
#include <varve/varve.hpp>

#include <cstdio>
#include <string>
namespace vv = varve;
using vv::tensor;

/// A tensor with a power of metres. Sums need one unit, products add the powers.
struct unit_tensor : vv::tensor_subclass<unit_tensor> {
  tensor value;
  int metres;
  unit_tensor(tensor v, int m) : value(std::move(v)), metres(m) {}

  auto parts() const { return std::tie(value); }
  unit_tensor with_parts(tensor const& v) const { return {v, metres}; }

  static int unit_of(tensor const& t) { return vv::is<unit_tensor>(t) ? vv::unwrap<unit_tensor>(t).metres : 0; }
  static std::string text(int metres) { return metres == 0 ? "1" : metres == 1 ? "m" : "m^" + std::to_string(metres); }

  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    std::string const name = op.name();
    int unit = 0;
    if (name == "mul") {
      for (auto const& t : x) unit += unit_of(t);
    } else {
      unit = unit_of(x[0]);
      for (auto const& t : x)
        if (unit_of(t) != unit) throw std::invalid_argument(name + " of " + text(unit) + " and " + text(unit_of(t)));
    }
    return vv::make_subclass(unit_tensor(op(vv::unwrap_all<unit_tensor>(x)), unit));
  }
};
tensor metres(double v) { return vv::make_subclass(unit_tensor(vv::full({}, v, vv::dtype::float64), 1)); }
std::string show(tensor const& t) {
  auto const& u = vv::unwrap<unit_tensor>(t);
  char text[64];
  std::snprintf(text, sizeof text, "%g %s", u.value.item<double>(), unit_tensor::text(u.metres).c_str());
  return text;
}

int main() {
  tensor const width = metres(2), height = metres(3);
  std::printf("%s x %s = %s\n", show(width).c_str(), show(height).c_str(), show(width * height).c_str());
  tensor const d = vv::grad([&](tensor const& w) { return w * height; })(width);
  std::printf("d(area)/d(width) = %s\n", show(d).c_str());
  try {
    (void)(width * height + width);
  } catch (std::invalid_argument const& e) { std::printf("refused: %s\n", e.what()); }

  // An operator that only this program knows: all transforms, modes and subclasses take it, since it is a composite of
  // others.
  vv::library shapes("shapes");
  shapes.def("perimeter(Tensor width, Tensor height) -> Tensor");
  shapes.impl("perimeter", vv::dispatch_key::composite_implicit,
              [](tensor const& w, tensor const& h) -> tensor { return w + w + h + h; });
  std::printf("perimeter of %s x %s: %s\n", show(width).c_str(), show(height).c_str(),
              show(vv::ops::call("shapes::perimeter", width, height)).c_str());
}
