# The doors of the project. `make demo` and `make check` set up what they need and say what they do;
# the work is done by Meson and the scripts in tools/.

FUZZ_SECONDS ?= 120
FORMAT = git ls-files -co --exclude-standard -z -- 'src/**.[ch]' 'tests/**.[ch]'

.PHONY: all demo check check-gpu portable fuzz asan tsan coverage check-debian docs format install \
    uninstall clean help setup

all: setup ## set up and build build/cutepilot
	@tools/configure build
	@flock build ninja -C build cutepilot
	@case '$(MAKECMDGOALS)' in ''|all) echo "Built build/cutepilot. Next: make demo, or build/cutepilot --help";; esac

setup:
	@tools/setup build

demo: all ## build, then kernels for four tasks on the simulator (or on your GPU), and one rejected
	@tools/demo

check: ## the tests (THOROUGH=1: all of them), sanitizers, fuzzers and linters
	@tools/setup check
	@tools/check

check-gpu: ## what only a GPU can show, from dist/ alone; STEPS="cheats honest" for some of it
	@[ -x dist/cutepilot ] || $(MAKE) --no-print-directory portable
	@tools/check-gpu $(STEPS)

portable: setup ## dist/cutepilot: one file for GPU hosts, glibc 2.36 or newer
	@tools/portable

fuzz: ## every fuzzer for FUZZ_SECONDS (120) each
	@tools/setup check
	@FUZZ_SECONDS="$(FUZZ_SECONDS)" tools/check fuzz
	@grep -E '^(not )?ok' build-check/fuzz.log

asan: ## the tests under address and undefined-behaviour sanitizers, clang and gcc
	@tools/setup check
	@tools/check asan asan-gcc

tsan: ## the tests that use threads under the thread sanitizer
	@tools/setup check
	@tools/check tsan

coverage: ## a coverage page, build-coverage/coverage/index.html
	@tools/setup check
	@tools/check coverage

check-debian: ## make demo and make check in a bare Debian 12, as root and as a user (needs root)
	@tools/check-debian

docs: ## what docs/TASKS.md says of functions, from src/spec/function.def
	@ninja -C build tests/test-spec-functions && build/tests/test-spec-functions write

format: ## clang-format every C file
	@$(FORMAT) | xargs -0 clang-format -i

PREFIX ?= /usr/local
install: all ## the program, its manual page and completions, below PREFIX (/usr/local)
	@tools/install build/cutepilot "$(PREFIX)" "$(DESTDIR)"

uninstall: ## take away what make install put below PREFIX
	@tools/install --remove "$(PREFIX)" "$(DESTDIR)"

clean: ## remove builds; .deps/ and runs/ stay
	rm -rf build build-gcc build-asan build-asan-gcc build-tsan build-coverage build-portable \
	    build-check dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
