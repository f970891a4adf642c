// SPDX-License-Identifier: BSL-1.0
// expect: for tensors declare specs
#include <varve/varve.hpp>
namespace vv = varve;

#include <iostream>

inline constexpr auto f = [](auto x) { return x * x; };
inline auto right(vv::tensor const& t) { return vv::fuse<vv::spec<float, 3>>(f)(t); }
#ifdef FAIL
inline void wrong(vv::tensor const& t) { std::cout << vv::fuse(f)(t) << "\n"; }
#endif
