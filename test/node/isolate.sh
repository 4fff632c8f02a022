#!/bin/sh
# isolate.sh FOLDER UMASK COMMAND...: inside new mount and network namespaces, runs a kubelet that can change nothing of
# the machine. The kubelet insists on writing these settings of the kernel, so each is covered with a file of FOLDER.
set -eu
folder=$1 mask=$2
shift 2
ip link set lo up
settings='vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000'
for setting in $settings; do
  file=$folder/$(echo "${setting%=*}" | tr / -)
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
# What has a fixed path, whatever the root folder.
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/kubelet
mount -t tmpfs tmpfs /var/log
umask "$mask"
exec "$@"
