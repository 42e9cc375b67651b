#!/bin/sh
# Becomes a machine in namespaces of its own: a copy of this system whose changes stay in memory, with systemd as process 1. `unshare` starts
# the script as process 1. Arguments: an empty folder, this checkout.
set -eu
folder=$1
checkout=$2

mount --make-rprivate /
mount -t tmpfs -o size=3g tmpfs "$folder"
mkdir "$folder/changes" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/changes,workdir=$folder/work" "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty fuse loop-control; do
  [ -e "/dev/$device" ] || continue
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p opt/runyard
mount --rbind "$checkout" opt/runyard
rm -rf etc/systemd/system
mkdir etc/systemd/system
printf '[Unit]\nRequires=dbus.socket\nAfter=dbus.socket\n' >etc/systemd/system/test.target
mkdir old
pivot_root . old
cd /
umount -l old
# systemd puts the folders with credentials into all mount namespaces, if mounts are shared.
mount --make-rshared /
ip link set lo up
export container=test
exec /lib/systemd/systemd --system --unit=test.target --log-target=journal
