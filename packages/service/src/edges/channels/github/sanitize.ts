/**
 * Makes text of an agent fit for GitHub, at the one place where it leaves the service. Outside of fenced code, no raw HTML remains, so the
 * rest of the text cannot hide anything, and a fence at the beginning of a line is certainly code.
 */

/** GitHub accepts 65,536 characters. */
const maxLength = 60_000;
const maxCutNote = '\n\n… (cut: the whole text is on the page of the run)';

/**
 * Characters without a visible form: controls, joiners, marks of direction (bidi), fillers, variation selectors and tags. They can hide
 * instructions for the next reader, or the true order of a text.
 */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu;

/** Returns a text without invisible characters. */
const visible = (text: string): string => text.normalize('NFC').replaceAll(/\r\n?/g, '\n').replaceAll(invisible, '');

/**
 * Returns a value whose texts and names have no invisible characters. This comes before the search for secrets, because such characters
 * inside of a secret would hide it from the search.
 */
export function visibleValue<T>(value: T): T {
  const clean = (each: unknown): unknown => {
    if (typeof each === 'string') return visible(each);
    if (Array.isArray(each)) return each.map(clean);
    if (typeof each !== 'object' || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([name, member]) => [visible(name), clean(member)]));
  };
  return clean(value) as T;
}

/** A word joiner between the sign and the name, so that GitHub notifies nobody and links no account. */
const joiner = '\u2060';

/** Changes a text outside of fenced code. */
const prose = (text: string): string =>
  text
    // Entities become characters when GitHub shows the text, for example the sign of a mention.
    .replaceAll(/&(?=#|[A-Za-z][A-Za-z0-9]*;)/g, '&amp;')
    // No HTML: no comments, no images, no blocks in which a fence would not be code.
    .replaceAll('<', '&lt;')
    // An image becomes a link, because a browser would load its address at once, with what the agent has put into the address.
    .replaceAll(/!+(?=\[)/g, '')
    // A fence in a list or a quotation ends where that ends, which this function does not follow. So it is no fence. `$$` begins a formula.
    .replaceAll(/([`~$])(?=\1)/g, `$1${joiner}`)
    .replaceAll(/(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])/g, `@${joiner}`);

const opening = /^(`{3,}|~{3,})([^`\n]*)$/;
const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*$/;
/** Names of languages that GitHub draws instead of showing the code. */
const drawn = /^(?:mermaid|math|geojson|topojson|stl)$/i;

/** Returns the language of a block of code as GitHub may know it. */
function languageOf(info: string): string {
  const [name = ''] = info.trim().split(/\s/);
  return drawn.test(name) ? '' : name.replaceAll(/[^\w.+#-]/g, '');
}

interface Line {
  readonly kind: 'prose' | 'code' | 'opening' | 'closing';
  readonly text: string;
  /** The marks of the block of code. */
  readonly marks: string;
}

/** Reads lines as CommonMark does (4.5) if only the beginning of a line can open a block of code. */
function readLines(text: string): Line[] {
  let open: string | undefined;
  return text.split('\n').map((line): Line => {
    if (open === undefined) {
      const [, marks] = opening.exec(line) ?? [];
      if (marks === undefined) return { kind: 'prose', text: line, marks: '' };
      open = marks;
      return { kind: 'opening', text: line, marks };
    }
    const marks = open;
    if (closing.exec(line)?.[1]?.startsWith(open)) {
      open = undefined;
      return { kind: 'closing', text: line, marks };
    }
    return { kind: 'code', text: line, marks };
  });
}

function cleanLine({ kind, text, marks }: Line): string {
  switch (kind) {
    case 'prose':
      return prose(text);
    case 'code':
      return text;
    case 'opening':
      return `${marks}${languageOf(text.slice(marks.length))}`;
    case 'closing':
      return marks;
  }
}

/** Returns the text for GitHub. Throws if the result breaks a rule of this file, so that nothing is sent. */
export function sanitize(text: string): string {
  const seen = visible(text);
  const cut = seen.length <= maxLength ? seen : `${seen.slice(0, maxLength)}${maxCutNote}`;
  const lines = readLines(cut).map(cleanLine);
  const last = readLines(lines.join('\n')).at(-1);
  const isOpen = last?.kind === 'opening' || last?.kind === 'code';
  const clean = [...lines, ...(isOpen ? [last.marks] : [])].join('\n');
  check(clean);
  return clean;
}

/** Reads the result again, and throws if it has something that must not be there. */
function check(text: string): void {
  const lines = readLines(text);
  const isDirty = lines.some(
    ({ kind, text: line }) => kind === 'prose' && /<|!\[|([`~$])\1|(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])|&(?=#)/.test(line),
  );
  const last = lines.at(-1)?.kind;
  if (isDirty || last === 'opening' || last === 'code') throw new Error('a text for GitHub is not clean');
}

/** Returns one line of plain text for a label, without any markup. */
export const plainLine = (text: string, most = 200): string => {
  const line = sanitize(text.replaceAll(/\s+/g, ' ').trim().slice(0, most));
  return line.replaceAll(/([\\`*_[\]#~|])/g, '\\$1');
};
