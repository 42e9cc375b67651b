/**
 * Forms. The service checks the values. A fault is shown at its field. If the service suggests another value, a button inserts this value.
 */

import { visibleText } from '@runyard/contract/wire/visible';
import {
  type ComponentProps,
  createContext,
  type FormEvent,
  type KeyboardEvent,
  type ReactNode,
  use,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import { failureOf, isPassing } from '../api/problem.ts';
import { Hint } from './blocks.tsx';
import card from './card.module.css';
import { FieldGroup, Input } from './controls.tsx';
import { type Fault, FaultText } from './fault-text.tsx';
import { Icon } from './icon.tsx';
import styles from './input.module.css';
import layout from './layout.module.css';
import { type Look, look } from './look.ts';
import { Problem } from './problem.tsx';

interface FormState {
  readonly faults: ReadonlyMap<string, Fault>;
  /**
   * Records that a field shows the faults at this path, so that the form does not show these faults a second time. Calling the
   * returned function removes the record.
   */
  readonly claim: (path: string) => () => void;
}

const FormContext = createContext<FormState>({ faults: new Map(), claim: () => () => {} });

/**
 * Header of a request that creates something. If the answer is lost, the repeated request has the same key, so that the service creates the
 * object only once.
 */
export interface OnceHeaders {
  readonly 'idempotency-key': string;
}

const frames = { none: undefined, content: layout.content, fields: layout.fields, card: card.card } as const;

/**
 * Calls `send` with the fields of the form. If `send` fails, each fault is shown at its field, and faults without a field are shown
 * below the fields.
 */
export function Form({
  id,
  frame,
  send,
  onBusy,
  onKeyDown,
  children,
}: {
  id: string;
  /** The element around the fields. Default: a stack. */
  frame?: keyof typeof frames;
  send: (data: FormData, headers: OnceHeaders) => Promise<unknown>;
  onBusy?: (isBusy: boolean) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ReactNode;
}) {
  const form = useRef<HTMLFormElement>(null);
  const key = useRef<string>(undefined);
  const paths = useRef<string[]>([]);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const failure = error === undefined ? undefined : failureOf(error);
  const isAtFields =
    failure !== undefined &&
    failure.members.size > 0 &&
    [...failure.members.keys()].every((path) => paths.current.some((claimed) => covers(claimed, path)));
  const state = useMemo(
    (): FormState => ({
      faults: error === undefined ? new Map() : failureOf(error).members,
      claim: (path) => {
        paths.current.push(path);
        return () => void paths.current.splice(paths.current.indexOf(path), 1);
      },
    }),
    [error],
  );
  const problem = useRef<HTMLDivElement>(null);
  // Put the focus on the first field with a fault, so that a screen reader reads the fault. Without such a field, show the problem.
  useEffect(() => {
    if (error === undefined) return;
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    if (field) field.focus();
    else problem.current?.scrollIntoView({ block: 'nearest' });
  }, [error]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy) return;
    const data = new FormData(event.currentTarget);
    key.current ??= crypto.randomUUID();
    setBusy(true);
    onBusy?.(true);
    setError(undefined);
    try {
      await send(data, { 'idempotency-key': key.current });
      key.current = undefined;
    } catch (failed) {
      if (!isPassing(failed)) key.current = undefined;
      setError(failed);
    }
    setBusy(false);
    onBusy?.(false);
  };
  return (
    <FormContext value={state}>
      <form
        ref={form}
        id={id}
        className={frame === undefined ? look({ stack: true }) : frames[frame]}
        onSubmit={(event) => void submit(event)}
        onKeyDown={onKeyDown}
      >
        {children}
        {!isAtFields && error !== undefined && (
          <div ref={problem}>
            <Problem error={error} />
          </div>
        )}
      </form>
    </FormContext>
  );
}

/** Attributes for the input, select or textarea of a field. */
export interface Control {
  readonly id: string;
  readonly name: string;
  readonly 'aria-invalid': true | undefined;
  readonly 'aria-describedby': string | undefined;
}

/**
 * Shows an input with its label, a hint, and the fault that the service has found at `path` of the request. `fault`: a fault that the
 * page has found before the form is sent.
 */
export function Field({
  label,
  path,
  name = path,
  hint,
  fault: early,
  children,
}: {
  label: ReactNode;
  path: string;
  name?: string;
  hint?: ReactNode;
  fault?: Fault | undefined;
  children: (control: Control) => ReactNode;
}) {
  const id = useId();
  const late = useFault(path);
  const fault = early ?? late;
  const described = [hint === undefined ? '' : `${id}-hint`, fault === undefined ? '' : `${id}-fault`];
  return (
    <FieldGroup>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        name,
        'aria-invalid': fault === undefined ? undefined : true,
        'aria-describedby': described.filter(Boolean).join(' ') || undefined,
      })}
      {fault !== undefined && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
      {hint !== undefined && <Hint id={`${id}-hint`}>{hint}</Hint>}
    </FieldGroup>
  );
}

/**
 * Returns true if a claimed path includes this path. `name` includes only itself; `config.network.*` includes `config.network` and all
 * paths below it.
 */
const covers = (claimed: string, path: string): boolean =>
  claimed.endsWith('.*') ? path === claimed.slice(0, -2) || path.startsWith(claimed.slice(0, -1)) : claimed === path;

/**
 * Returns the fault at a path of the request, for a component that shows this fault. The form does not show the fault a second time. A path
 * such as `config.network.*` means `config.network` and all paths below it.
 */
export function useFault(path: string): Fault | undefined {
  const { faults, claim } = use(FormContext);
  useEffect(() => claim(path), [claim, path]);
  return faults.get(path) ?? [...faults].find(([each]) => covers(path, each))?.[1];
}

/** Returns whether the service has found faults in the request, for parts of a form that may be closed. */
export const useHasFaults = (): boolean => use(FormContext).faults.size > 0;

type Same = 'label' | 'path' | 'hint';
type FieldProps = Pick<Parameters<typeof Field>[0], Same>;

/** A field of one line. */
export function TextField({
  label,
  path,
  hint,
  className,
  mono,
  ...input
}: FieldProps & Pick<Look, 'mono'> & ComponentProps<'input'>) {
  return (
    <Field label={label} path={path} {...(hint === undefined ? {} : { hint })}>
      {(control) => (
        <Input
          type="text"
          autoComplete="off"
          spellCheck={false}
          {...input}
          {...control}
          name={input.name ?? path}
          className={className}
          mono={mono}
        />
      )}
    </Field>
  );
}

/** A field in which a person chooses one of `options`. An option is a value with its label. */
export function SelectField({
  label,
  path,
  hint,
  options,
  ...select
}: FieldProps & ComponentProps<'select'> & { options: readonly (readonly [value: string, words: string])[] }) {
  return (
    <Field label={label} path={path} {...(hint === undefined ? {} : { hint })}>
      {(control) => <Select options={options} {...select} {...control} />}
    </Field>
  );
}

/** A `select` element with the arrow of our design. */
export function Select({
  options,
  ...select
}: ComponentProps<'select'> & { options: readonly (readonly [value: string, words: string])[] }) {
  return (
    <span className={styles.select}>
      <Input as="select" {...select}>
        {options.map(([value, words]) => (
          <option key={value} value={value}>
            {visibleText(words)}
          </option>
        ))}
      </Input>
      <Icon name="down" small />
    </span>
  );
}

/** Returns the text of a field without white space at both ends; undefined if this text is empty. */
export function textOf(data: FormData, name: string): string | undefined {
  const value = data.get(name);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}

/** Returns `{ [name]: text }` if the field has a text, and otherwise `{}`. */
export function memberOf<N extends string>(data: FormData, name: N): { readonly [K in N]?: string } {
  const text = textOf(data, name);
  return (text === undefined ? {} : { [name]: text }) as { readonly [K in N]?: string };
}
