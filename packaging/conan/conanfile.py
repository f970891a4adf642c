# SPDX-License-Identifier: BSL-1.0
"""conan create packaging/conan: headers only. For the compiled library install varve with CMake."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class VarveConan(ConanFile):
    name = "varve"
    description = "Composable program transformations for C++20 array code"
    license = "BSL-1.0"
    topics = ("automatic-differentiation", "tensors", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_xsimd": [True, False], "threads": ["none", "openmp", "pool"]}
    default_options = {"with_xsimd": True, "threads": "none"}
    no_copy_source = True

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        copy(self, "include/*", root, self.export_sources_folder)
        copy(self, "LICENSE", root, self.export_sources_folder)

    def set_version(self):
        config = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "varve", "config.hpp"))
        self.version = re.search(r'VARVE_VERSION_STRING "([^"]+)"', config).group(1)

    def layout(self):
        basic_layout(self, src_folder=".")

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", options={"header_only": True})
        if self.options.with_xsimd:
            self.requires("xsimd/[>=8.1 <15]")

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "varve")
        self.cpp_info.set_property("cmake_target_name", "varve::varve")
        self.cpp_info.set_property("pkg_config_name", "varve")
        # As CMakeLists.txt has it in varve_dependencies and varve_requirements.
        self.cpp_info.defines = [f"VARVE_USE_XSIMD={1 if self.options.with_xsimd else 0}"]
        self.cpp_info.cxxflags = {
            "gcc": ["-fconstexpr-ops-limit=1000000000", "-fconstexpr-loop-limit=10000000", "-ftoplevel-reorder"],
            "clang": ["-fconstexpr-steps=1000000000"],
            "apple-clang": ["-fconstexpr-steps=1000000000"],
        }.get(str(self.settings.get_safe("compiler")), [])
        if self.options.threads == "openmp":
            self.cpp_info.defines.append("VARVE_USE_OPENMP=1")
            self.cpp_info.cxxflags.append("-fopenmp")
            self.cpp_info.exelinkflags = ["-fopenmp"]
            self.cpp_info.sharedlinkflags = ["-fopenmp"]
        elif self.options.threads == "pool":
            self.cpp_info.defines.append("VARVE_USE_THREADS=1")
            if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
                self.cpp_info.system_libs = ["pthread"]
