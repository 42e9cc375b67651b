/** Settings, and scripts that come before Debian's programs in PATH. With them, the user of a sandbox can install packages. */

/** Packages beside those that every Debian has (`Essential: yes`, priority `required`). Agents need git and curl. */
export const systemPackages = ['apt', 'usr-is-merged', 'ca-certificates', 'fakeroot', 'git', 'curl', 'procps'] as const;

/**
 * Runs a program with fakeroot(1): it sees itself as root, and changes of owners succeed without effect, because all files belong to the
 * user of the sandbox. FAKEROOTDONTTRYCHOWN: the kernel would refuse owners that the user namespace does not have, with an error that
 * fakeroot does not hide.
 */
const asRoot = `#!/bin/sh
export FAKEROOTDONTTRYCHOWN=1 DEBIAN_FRONTEND="\${DEBIAN_FRONTEND:-noninteractive}"
program=/usr/bin/\${0##*/}
[ "$(id -u)" = 0 ] && exec "$program" "$@"
exec fakeroot-sysv -- "$program" "$@"
`;

/** \`sudo\` of another user than root runs the command as the only real user of the sandbox. */
const sudo = `#!/bin/sh
export FAKEROOTDONTTRYCHOWN=1
user=root
while :; do
  case $1 in
    -u|--user) user=$2; shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    [A-Za-z_]*=*) export "$1"; shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || exit 0
[ "$user" = root ] && [ "$(id -u)" != 0 ] && exec fakeroot-sysv -- "$@"
exec "$@"
`;

const files: Readonly<Record<string, { readonly text: string; readonly mode: string }>> = {
  '/usr/local/sbin/apt-get': { text: asRoot, mode: '755' },
  '/usr/local/sbin/sudo': { text: sudo, mode: '755' },
  // No service is started when its package is installed.
  '/usr/sbin/policy-rc.d': { text: '#!/bin/sh\nexit 101\n', mode: '755' },
  '/etc/apt/apt.conf.d/90runyard': { text: 'APT::Sandbox::User "root";\n', mode: '644' },
  '/etc/dpkg/dpkg.cfg.d/90runyard': { text: 'force-unsafe-io\nforce-confold\n', mode: '644' },
  '/etc/hosts': { text: '127.0.0.1 localhost sandbox\n::1 localhost\n', mode: '644' },
  '/etc/hostname': { text: 'sandbox\n', mode: '644' },
};

/**
 * Script that installs the packages in /var/cache/apt/archives, whose files are there already, and then the files above. It runs under
 * fakeroot in a sandbox whose root is the new system.
 */
export const systemScript = (uid: number): string =>
  [
    'set -e',
    'archives=/var/cache/apt/archives',
    // base-passwd makes these files, but other packages need them before.
    "printf 'root:x:0:0:root:/root:/bin/sh\\n' >/etc/passwd; printf 'root:x:0:\\nmail:x:8:\\nshadow:x:42:\\nutmp:x:43:\\n' >/etc/group",
    'dpkg --force-unsafe-io --force-depends --install $archives/base-passwd_*.deb',
    'dpkg --force-unsafe-io --force-depends --unpack $archives/*.deb',
    'dpkg --force-unsafe-io --configure --pending',
    'rm -rf $archives/*.deb /var/lib/apt/lists/*',
    `echo 'agent:x:${uid}:${uid}:agent:/home/agent:/bin/sh' >>/etc/passwd; echo 'agent:x:${uid}:' >>/etc/group`,
    ...Object.entries(files).map(
      ([file, { text, mode }]) => `cat >${file} <<'END_OF_FILE'\n${text}END_OF_FILE\nchmod ${mode} ${file}`,
    ),
    'for name in apt dpkg apt-mark; do ln -sf apt-get /usr/local/sbin/$name; done',
  ].join('\n');
