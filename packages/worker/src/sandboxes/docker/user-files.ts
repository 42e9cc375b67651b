/**
 * Returns the texts of the files in /etc that name the users of a container. They replace the files of the image, which do not contain the
 * sandbox's user.
 */
export const userFiles = (uid: number, gid: number): Readonly<Record<string, string>> => ({
  passwd: [
    ...(uid === 0 ? [] : ['root:x:0:0:root:/root:/sbin/nologin']),
    `agent:x:${uid}:${gid}:agent:/home/agent:/bin/sh`,
    'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin',
    '',
  ].join('\n'),
  group: [...(gid === 0 ? [] : ['root:x:0:']), `agent:x:${gid}:`, 'nogroup:x:65534:', ''].join('\n'),
});
