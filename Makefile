# make book · make test · make live · make bundle · make pdf · make quick · make lab · make notebooks · make bench · make fuzz · make mutants · make clean      (each sets up .venv by itself)
PYTHON ?= python3
BIN := .venv/bin
# what setup, book, test, lab and others run stands in src/miniquant/course.py; without make: python -m miniquant.course test
COURSE := $(PYTHON) miniquant/course.py
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport MPLBACKEND  # figures appear in pages only if the notebook chooses its own backend
# where Python is told to keep no compiled modules, each of the many kernels and workers compiles them anew
unexport PYTHONDONTWRITEBYTECODE
# small matrices: threads that wait for each other cost more than they bring
export OMP_WAIT_POLICY := passive

.PHONY: help book book-strict live bundle pdf test test-spanish quick lowest lab notebooks bench fuzz mutants clean test-quant need-gguf gguf-inspect gguf-list gguf-to-bump

help:
	@echo "make book        run every lab and build the course site"
	@echo "make test        set up .venv and run all tests"
	@echo "make test-spanish  run the labs in Spanish and compare their outputs"
	@echo "make live        the site, with Python, an editor and llama.cpp in its pages: try a lab with nothing installed"
	@echo "make bundle      the course, its packages and the live site in one folder, for a computer without a network"
	@echo "make pdf         the course as one book on paper, with links and page numbers; it needs a Chromium"
	@echo "make quick       the tests of formats, quantization and the engine of the labs, for everyday work"
	@echo "make lowest      the same tests with the lowest versions that pyproject.toml declares, in .venv-lowest"
	@echo "make lab         open JupyterLab on notebooks/; make lab LAB=06 opens that lab"
	@echo "make notebooks   derive notebooks/ from solutions/ and run both"
	@echo "make bench       measure the codecs and files, for the page on speed"
	@echo "make fuzz        damage files and read them, guided by coverage, for SECONDS=60"
	@echo "make mutants     put faults into the source, one at a time: do the tests notice? MINUTES=60"
	@echo "make test-quant  only the tests of quantization: codecs, packing, kernels"
	@echo "make gguf-inspect GGUF=model.gguf    which types, how many tensors and bytes"
	@echo "make gguf-list GGUF=model.gguf       every tensor"
	@echo "make gguf-to-bump GGUF=model.gguf    write GGUF_OUT/weights.bump and config.json"
	@echo "make clean       remove .venv, .venv-lowest and everything that was built"

.venv/.installed: requirements.txt constraints.txt pyproject.toml
	@$(COURSE) setup

book test test-spanish live quick notebooks bundle pdf book-strict:
	@$(COURSE) $@

lab:
	@$(COURSE) lab $(LAB)

lowest: .venv/.installed
	@test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	$(BIN)/python tools/lowest.py > .venv-lowest/requirements.txt
	.venv-lowest/bin/python -m pip install -q -r .venv-lowest/requirements.txt -e ".[labs]"
	MPLBACKEND=agg OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -q -p tools.longest_first -p tools.in_copies --copies 2 -p no:nbval @tests/quick.txt

bench: .venv/.installed
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench_gguf.py
	$(BIN)/python benchmarks/bench_bump.py
	$(BIN)/python benchmarks/bench_runtime.py
	$(BIN)/python benchmarks/bench_convert.py
	$(BIN)/python benchmarks/bench_grading.py

# atheris is here and not in requirements.txt: it has no wheel for every Python
fuzz: SECONDS ?= 60
fuzz: .venv/.installed
	@$(BIN)/python -m pip install -q --only-binary :all: atheris==3.0.0 2> .venv/fuzz.log || echo "== atheris has no wheel for this Python; files are damaged without its guidance"
	$(BIN)/python -m fuzz --guided $(SECONDS)

# mutmut is here and not in requirements.txt: only this target needs it
mutants: MINUTES ?= 60
mutants: .venv/.installed
	@$(BIN)/python -m pip install -q mutmut==3.8.1 -c constraints.txt 2> .venv/mutants.log || { tail -n 5 .venv/mutants.log; exit 1; }
	$(BIN)/python -m pytest -q tools/test_mutants_faults.py
	$(BIN)/python tools/mutants.py --minutes $(MINUTES) $(MODULES)

test-quant: .venv/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -p tools.longest_first -p tools.in_copies --copies 2 -p no:nbval tests/quantization/test_symmetric.py tests/quantization/test_packing.py tests/formats/gguf/codecs tests/runtime/test_bump_kernels.py

GGUF_OUT ?= GGUF_OUT
need-gguf:
	@test -n "$(GGUF)" || { echo "name a file: make gguf-inspect GGUF=model.gguf"; exit 2; }

gguf-inspect: need-gguf .venv/.installed
	@$(BIN)/miniquant inspect "$(GGUF)"

gguf-list: need-gguf .venv/.installed
	@$(BIN)/miniquant list "$(GGUF)"

gguf-to-bump: need-gguf .venv/.installed
	@mkdir -p "$(GGUF_OUT)"
	@$(BIN)/miniquant to-bump "$(GGUF)" -o "$(GGUF_OUT)/weights.bump" || { rmdir "$(GGUF_OUT)" 2> /dev/null; exit 1; }

clean:
	@$(COURSE) clean
