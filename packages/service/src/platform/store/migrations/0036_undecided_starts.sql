-- True: the start waits although no policy says so, because its run could not be prepared. The policy is applied when the run is prepared.
ALTER TABLE starts ADD COLUMN undecided boolean NOT NULL DEFAULT false CHECK (NOT undecided OR outcome = 'waiting');
