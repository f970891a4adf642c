// SPDX-License-Identifier: BSL-1.0
// What the printers of packaging/debug/varve_gdb.py are shown. Each line `// shows: <variable> = <text>` is
// tested.
// shows: vector = tensor float64[3] [1, 2.5, -3]
// shows: matrix = tensor float32[2, 2] [[1, 3], [2, 4]]
// shows: counts = tensor int64[4] [0, 1, 2, 3]
// shows: truth = tensor bool[2] [true, false]
// shows: number = tensor float64[] 0.5
// shows: none = tensor (undefined)
// shows: empty = tensor float32[0, 3] []
// shows: many = tensor int64[100] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, ...]
// shows: shape = [2, 3]
// shows: fixed = double[2, 2] [[1, 2], [3, 4]]
// shows next: v = tensor float64[3] seen through a transform: tensor float64[3] [1, 2.5, -3]
#include <varve/varve.hpp>
namespace vv = varve;

__attribute__((noinline)) void stop_here(vv::tensor const&) { __asm__ volatile(""); }

int main() {
  vv::tensor vector = {1.0, 2.5, -3.0}, none;
  vv::tensor matrix = vv::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}).t(); // not in a row
  vv::tensor counts = vv::arange(4, vv::dtype::int64), truth = counts.at(vv::slice(0, 2)) == 0;
  vv::tensor number = vv::full({}, 0.5, vv::dtype::float64), empty = vv::zeros({0, 3}),
             many = vv::arange(100, vv::dtype::int64);
  vv::dims shape{2, 3};
  vv::array<double, 2, 2> fixed{1, 2, 3, 4};
  stop_here(vector);
  (void)vv::grad([](vv::tensor const& v) {
    stop_here(v);
    return vv::sum(v);
  })(vector);
}
