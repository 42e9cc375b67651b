/**
 * Dialogs of React Aria. The focus stays inside a dialog, Escape closes the dialog, and the focus returns to the opener. This file is
 * loaded with the first dialog.
 */

import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useState } from 'react';
import { Dialog as AriaDialog, Button, Heading, Modal, ModalOverlay } from 'react-aria-components';
import { useAttempts } from './attempt.ts';
import { CommandBlock } from './copy.tsx';
import { Problem } from './problem.tsx';

/**
 * Shows a dialog. `footer` has the buttons of the dialog. Escape and a click outside of the dialog call `close`, but do nothing if
 * `mustDecide` is set.
 */
export function Dialog({
  title,
  children,
  footer,
  close,
  mustDecide = false,
  isAlert = false,
}: {
  title: string;
  children: ReactNode;
  footer: ReactNode;
  close: () => void;
  mustDecide?: boolean;
  isAlert?: boolean;
}) {
  return (
    <ModalOverlay
      className="over"
      isOpen
      isDismissable={!mustDecide}
      isKeyboardDismissDisabled={mustDecide}
      onOpenChange={(open) => open || close()}
    >
      <Modal className="dlg">
        <AriaDialog role={isAlert ? 'alertdialog' : 'dialog'}>
          <div className="dlg-b">
            <Heading slot="title" level={2}>
              {visibleText(title)}
            </Heading>
            {children}
          </div>
          <div className="dlg-f">{footer}</div>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/**
 * Asks for confirmation before an action that cannot be undone. `children` describe what the action changes. The focus is on the button
 * that does not run the action.
 */
export function ConfirmDialog({
  title,
  children,
  action,
  safe = 'Keep',
  run,
  close,
}: {
  title: string;
  children: ReactNode;
  /** Label of the button that runs the action. */
  action: string;
  safe?: string;
  run: () => Promise<unknown>;
  close: () => void;
}) {
  const { error, isBusy, attempt } = useAttempts();
  const act = async () => {
    if (await attempt(run)) close();
  };
  return (
    <Dialog
      title={title}
      close={close}
      isAlert
      footer={
        <>
          <Button className="btn" autoFocus onPress={close}>
            {safe}
          </Button>
          <Button className="btn dan" isDisabled={isBusy} onPress={() => void act()}>
            {action}
          </Button>
        </>
      }
    >
      <div className="mut">{children}</div>
      <Problem error={error} />
    </Dialog>
  );
}

/**
 * Shows a secret that the service shows only once. Closes only after the person has copied the secret, or has confirmed that the secret is
 * stored.
 */
export function SecretOnceDialog({
  title,
  value,
  hint,
  children,
  close,
}: {
  title: string;
  value: string;
  hint?: string;
  children?: ReactNode;
  close: () => void;
}) {
  const [isCopied, setCopied] = useState(false);
  return (
    <Dialog
      title={title}
      close={close}
      mustDecide
      footer={
        <>
          <span className="hint grow">{hint}</span>
          {!isCopied && (
            <Button className="btn ghost" onPress={close}>
              I stored it
            </Button>
          )}
          <Button className="btn pri" isDisabled={!isCopied} onPress={close}>
            {isCopied ? 'Done' : 'Copy it first'}
          </Button>
        </>
      }
    >
      <p className="mut">It is shown only once. Copy it now, because nobody can show it again.</p>
      <CommandBlock command={value} what="Copy value" onCopied={() => setCopied(true)} />
      {children}
    </Dialog>
  );
}
