# Builds and installs libnorm and benchdnn. docs/installing.md says more.
#
#   make                     build with cargo, into target/stage
#   make install             copy to DESTDIR/PREFIX; does not need cargo after make
#   make uninstall           remove what make install copied to DESTDIR/PREFIX
#   make deb                 Debian packages in target/debian (needs debhelper)
#   make help                print this
#
#   PREFIX=/usr/local        where the files are installed
#   LIBDIR=lib               the folder for the libraries below the prefix
#   DESTDIR=                 prepended to the prefix, for packages
#   CARGO=cargo              the build command
#   CARGOFLAGS=--locked      its options
#   INSTALL=install          the command that copies a file
#   NORM_REVISION=           the value of norm_version()->hash; by default the commit

PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=
CARGO ?= cargo
CARGOFLAGS ?= --locked
INSTALL ?= install

# A misspelt variable would leave the default in force, so the command line may only have these: those above, cargo's
# own, and what packagers' tools set. The variables of another Makefile that calls this one arrive here, too.
own := PREFIX LIBDIR DESTDIR CARGO CARGOFLAGS INSTALL NORM_REVISION
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
unknown := $(filter-out $(own) CARGO_% RUST% SHELL V VERBOSE,$(given))
ifeq ($(MAKELEVEL),0)
$(foreach name,$(unknown),$(error $(name) is not a variable of this Makefile; it has $(own). See make help))
endif

target := $(or $(CARGO_TARGET_DIR),target)
# From the root of the file system, as the recipes change folders.
root := $(if $(filter /%,$(DESTDIR)$(PREFIX)),,$(CURDIR)/)$(DESTDIR)$(PREFIX)
# Below the prefix, as LIBDIR=/usr/lib64 with PREFIX=/usr is usual too.
libdir := $(patsubst $(PREFIX)/%,%,$(LIBDIR))
tree := $(target)/stage/prefix
# The tree depends on these, so each of their values has a stamp of its own.
made_with := $(subst ",,$(subst ',,$(subst =,-,$(subst /,-,$(strip $(libdir) $(CARGOFLAGS))))))
empty :=
stamp := $(target)/stage/stamp-$(subst $(empty) ,_,$(made_with))
sources := $(shell find Cargo.toml Cargo.lock build.rs src include norm-sys benchdnn xtask packaging -type f)
# The library contains the revision.
sources += $(wildcard .git/logs/HEAD)
# The installed files, relative to the prefix.
list := share/doc/libnorm/files

all: $(stamp)

$(stamp): $(sources)
	$(CARGO) xtask stage --libdir $(libdir) $(CARGOFLAGS)
	@touch '$@'

# What an older version installed stays on the list. install(1) replaces a file that is in use.
install: $(stamp)
	@umask 022; mkdir -p '$(root)/$(dir $(list))' && touch '$(root)/$(list)'
	@cd '$(tree)' && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort -u -o '$(root)/$(list)' - '$(root)/$(list)'
	@umask 022; cd '$(tree)' && find . ! -type d | sed 's|^\./||' | while read -r file; do \
	    to='$(root)'/"$$file"; mkdir -p "$${to%/*}" || exit 1; \
	    if [ -L "$$file" ]; then ln -sfn "$$(readlink "$$file")" "$$to" || exit 1; \
	    elif [ -x "$$file" ]; then $(INSTALL) -m 755 "$$file" "$$to" || exit 1; \
	    else $(INSTALL) -m 644 "$$file" "$$to" || exit 1; fi; \
	    echo "$$to"; \
	done

# Folders of this project alone are removed, if nothing else is in them.
uninstall:
	@[ -f '$(root)/$(list)' ] || { echo 'no libnorm is installed in $(root)' >&2; exit 1; }
	@cd '$(root)' && while read -r file; do rm -f "$$file" && echo '$(root)'/"$$file" || exit 1; done <'$(list)'
	@cd '$(root)' && folders=$$(sed -n -E 's,^(.*/(lib)?norm)/[^/]*$$,\1,p' '$(list)' | LC_ALL=C sort -u) && \
	    rm '$(list)' && \
	    for folder in $$folders; do [ ! -d "$$folder" ] || rmdir --ignore-fail-on-non-empty "$$folder"; done

# Cargo may come from rustup, so its package is not required (-d).
deb: folder := $(target)/debian/libnorm
deb: version = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -1)
deb:
	$(MAKE) LIBDIR=lib/$(shell dpkg-architecture -qDEB_HOST_MULTIARCH)
	rm -rf '$(target)/debian' && mkdir -p '$(folder)' && cp -R packaging/debian '$(folder)'
	printf 'libnorm (%s) unstable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n' '$(version)' '$(version)' \
	    "$$(sed -n 's/^Maintainer: //p' packaging/debian/control)" "$$(date -R)" >'$(folder)/debian/changelog'
	cd '$(folder)' && SOURCE='$(CURDIR)' dpkg-buildpackage -b -us -uc -d
	@ls '$(target)'/debian/*.deb

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' '$(firstword $(MAKEFILE_LIST))'

.PHONY: all install uninstall deb help
