"""What squeue, sinfo and scontrol answer, as text or JSON, made a snapshot."""
