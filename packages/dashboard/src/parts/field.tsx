import { type ReactNode, useId } from 'react';

/** A field of a form with its label. Below it is the fault that the service found in it, or a hint. */
export function Field({
  label,
  hint,
  fault,
  children,
}: {
  label: string;
  hint?: string | undefined;
  fault?: { readonly message: string } | undefined;
  /** Gets the id for the field. */
  children: (id: string) => ReactNode;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {fault ? (
        <p className="small badc" role="alert">
          {fault.message}
        </p>
      ) : (
        hint && <span className="hint">{hint}</span>
      )}
    </div>
  );
}
