#!/bin/sh
# emulate.sh BINARY [ARGS...] runs a static linux/amd64 program on an emulated CPU with AVX-512 (Bochs, booting a Debian kernel) and
# gives its output and exit status, or 125 if the guest gave none; also: CGO_ENABLED=0 go test -exec=emulate.sh. A testdata folder in
# the working directory goes with it. EMULATE_TOOLS holds bochs and vmlinuz; EMULATE_CPU names another model (corei7_icelake_u, which
# has VNNI and VBMI too); EMULATE_LIMIT bounds the run in seconds. The clock inside is virtual: 200 million instructions to the second.
set -eu
tools=${EMULATE_TOOLS:-/tmp/avx512} dir=$(mktemp -d)
trap 'kill ${!:-} 2>/dev/null || true; rm -rf "$dir"' EXIT; trap 'exit 130' HUP INT QUIT TERM
(cd "$dir" && mkdir -p cd root/bin root/dev root/proc root/sys root/tmp root/work)
cp /bin/busybox "$dir/root/bin"; cp "$1" "$dir/root/bin/program"; shift; [ ! -d testdata ] || cp -r testdata "$dir/root/work"
cd "$dir"; cp "$tools/vmlinuz" /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 cd; touch output console; echo 'display_library: nogui' >bochsrc
{ printf '%s\n' '#!/bin/busybox sh' 'for m in devtmpfs:dev proc:proc sysfs:sys tmpfs:tmp; do busybox mount -t ${m%:*} none /${m#*:}; done'
  printf '%s' 'cd /work; busybox ifconfig lo up; busybox stty -F /dev/ttyS0 -opost; HOME=/tmp program'; for a; do printf " '%s'" "$(printf %s "$a" | sed "s/'/'\\\\''/g")"; done
  printf '%s\n' ' </dev/null >/dev/ttyS0 2>&1' 'echo "exit status $?" >/dev/ttyS1; busybox stty -F /dev/ttyS0 opost; busybox poweroff -f'; } >root/init
chmod +x root/init; (cd root && find . | cpio --quiet -o -H newc) >cd/initrd
echo default vmlinuz initrd=initrd console=ttyS1,115200 quiet nosmp noapic nolapic mitigations=off lpj=800000 tsc_early_khz=200000 tsc=reliable \
  cryptomgr.notests=1 initcall_blacklist=load_system_certificate_list random.trust_cpu=on clearcpuid=fsrm,erms panic=-1 idle=poll PATH=/bin >cd/isolinux.cfg
xorriso -as mkisofs -quiet -o cd.iso -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table cd 2>/dev/null
setpriv --pdeathsig TERM timeout -k 5 "${EMULATE_LIMIT:-1200}" "$tools/bochs" -q -f bochsrc 'memory: guest=1024, host=1024' 'boot: cdrom' \
  "cpu: model=${EMULATE_CPU:-corei7_skylake_x}, ips=200000000, reset_on_triple_fault=0, ignore_bad_msrs=1" 'clock: sync=none, time0=1800000000' \
  "romimage: file=/usr/share/bochs/BIOS-bochs-latest" "vgaromimage: file=/usr/share/vgabios/vgabios.bin" 'ata0-master: type=cdrom, path=cd.iso, status=inserted' \
  'com1: enabled=1, mode=file, dev=output' 'com2: enabled=1, mode=file, dev=console' 'log: log' 'panic: action=fatal' 'error: action=ignore' 'info: action=ignore' </dev/null >term 2>&1 & wait $! || true
cat output; status=$(sed -n 's/^exit status \([0-9]*\).*/\1/p' console); [ "$status" ] || cat term console >&2; exit "${status:-125}"
