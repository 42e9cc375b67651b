/** Maximum number of bytes of a file name on Linux. */
const maxNameBytes = 255;

/** Path separators, characters that Windows forbids, C0 and C1 controls, DEL, bidirectional overrides, line separators. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds control characters.
const unsafe = /[/\\:*?"<>|\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]/g;

/**
 * Returns a safe file name for each of `names`, in order: one path segment, not hidden, at most 255 bytes. All names
 * differ from each other and from the names in `existing`. Safe names are necessary because a stranger may choose the name of an
 * attachment: such a name may lead out of the folder, hide the file, or have control or bidirectional characters.
 */
export function safeNames(names: readonly string[], existing: readonly string[] = []): string[] {
  const taken = new Set(existing.map((name) => name.toLowerCase()));
  return names.map((name) => {
    const safe = safeName(name);
    let unique = safe;
    for (let number = 2; taken.has(unique.toLowerCase()); number++) unique = suffixed(safe, `-${number}`);
    taken.add(unique.toLowerCase());
    return unique;
  });
}

function safeName(name: string): string {
  const segment = name.toWellFormed().split(/[/\\]/).at(-1) ?? '';
  const clean = segment
    .normalize('NFC')
    .replace(unsafe, '_')
    .replace(/^[.\s-]+/, '')
    .replace(/[.\s]+$/, '');
  return suffixed(clean === '' ? 'attachment' : clean, '');
}

/** Returns `name` with `suffix` before its extension, shortened to the limit. */
function suffixed(name: string, suffix: string): string {
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && name.length - dot <= 16 ? name.slice(dot) : '';
  let stem = extension === '' ? name : name.slice(0, dot);
  while (Buffer.byteLength(stem + suffix + extension) > maxNameBytes) stem = [...stem].slice(0, -1).join('');
  return stem + suffix + extension;
}
